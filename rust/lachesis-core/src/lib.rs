//! The engine of Lachesis.
