"""Models: the shape that prices a decode step, and the KV and weights that follow from it."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from lachesis.presets.base import BytesPerValue, Count, Part, PositiveInt, Preset
from lachesis.presets.loader import load_preset
from lachesis.presets.node import WindowedKv

DEFAULT_MODEL = "llama-4-maverick"


class LayerGroup(Part, frozen=True, kw_only=True):
    """Layers that share one KV shape and one reach.

    With MLA `kv_heads` is 1 and `head_dim` is the latent with its rotary key, stored once.
    `window` is the reach in tokens (None: the whole context). `value_projection` is false where
    keys and values share one projection; both are cached all the same.
    """

    layers: PositiveInt
    kv_heads: PositiveInt
    head_dim: PositiveInt
    window: PositiveInt | None = None
    window_kind: Literal["none", "sliding", "chunked"]
    value_projection: bool = True

    def __post_init__(self) -> None:
        if (self.window is None) != (self.window_kind == "none"):
            raise ValueError("window must be given exactly where window_kind is not none")


class LatentAttention(Part, frozen=True, kw_only=True):
    """Multi-head latent attention (MLA): ranks and the parts of a head."""

    kv_lora_rank: PositiveInt
    qk_rope_dim: PositiveInt
    qk_nope_dim: PositiveInt
    v_dim: PositiveInt
    q_lora_rank: PositiveInt


class SparseAttention(Part, frozen=True, kw_only=True):
    """DeepSeek sparse attention (DSA): every index key is read, `top_k_tokens` latents are."""

    top_k_tokens: PositiveInt
    indexer_heads: PositiveInt
    indexer_head_dim: PositiveInt
    index_key_bytes_per_value: BytesPerValue


class ModelPreset(Preset, frozen=True, kw_only=True):
    """A model's text stack, without vision tower and multi-token prediction layers.

    Sizes are in values; zero stands for "has none". Parameters count the weight matrices only:
    norms, biases and attention sinks (under 0.1 %) are left out.
    """

    layers: PositiveInt
    hidden: PositiveInt
    vocab: PositiveInt
    tied_embeddings: bool
    attention: Literal["gqa", "mla"]
    heads: PositiveInt
    dense_layers: Count
    dense_ffn: Count
    moe_layers: Count
    experts: Count
    experts_per_token: Count
    expert_ffn: Count
    shared_experts: Count
    shared_ffn: Count
    gated_ffn: bool
    weight_bytes_per_value: BytesPerValue
    kv_bytes_per_value: BytesPerValue
    layer_groups: tuple[LayerGroup, ...]
    mla: LatentAttention | None = None
    dsa: SparseAttention | None = None

    def __post_init__(self) -> None:
        self._check_layers()
        self._check_ffn()
        self._check_attention()
        for per_token in (_kv_per_token(self), _index_per_token(self)):
            if per_token.denominator != 1:
                raise ValueError("kv_bytes_per_value must give a whole number of bytes per token")

    def _check_layers(self) -> None:
        if sum(group.layers for group in self.layer_groups) != self.layers:
            raise ValueError("layers must equal the sum of layer_groups")
        if self.dense_layers + self.moe_layers != self.layers:
            raise ValueError("layers must equal dense_layers + moe_layers")

    def _check_ffn(self) -> None:
        if self.dense_layers and not self.dense_ffn:
            raise ValueError("dense_ffn must be at least 1 where there are dense_layers")
        if self.moe_layers and not (self.experts and self.expert_ffn):
            raise ValueError("experts and expert_ffn must be at least 1 where there are moe_layers")
        if self.moe_layers and not 1 <= self.experts_per_token <= self.experts:
            raise ValueError("experts_per_token must lie between 1 and experts")
        if self.shared_experts and not self.shared_ffn:
            raise ValueError("shared_ffn must be at least 1 where there are shared_experts")

    def _check_attention(self) -> None:
        if (self.mla is not None) != (self.attention == "mla"):
            raise ValueError("mla must be given exactly where attention is mla")
        if self.dsa is not None and self.mla is None:
            raise ValueError("dsa needs mla")
        for group in self.layer_groups:
            if self.mla is not None:
                latent = self.mla.kv_lora_rank + self.mla.qk_rope_dim
                if (group.kv_heads, group.head_dim) != (1, latent):
                    raise ValueError(
                        f"layer_groups of MLA must have kv_heads 1 and head_dim {latent} "
                        "(kv_lora_rank + qk_rope_dim)"
                    )
            elif self.heads % group.kv_heads:
                raise ValueError("heads must be a multiple of the kv_heads of every layer group")

    @property
    def kv_heads(self) -> int | None:
        """KV heads, where all layer groups have the same number; else None."""
        return _common([group.kv_heads for group in self.layer_groups])

    @property
    def head_dim(self) -> int | None:
        """Values a KV head, where all layer groups have the same number; else None."""
        return _common([group.head_dim for group in self.layer_groups])

    @property
    def kv_bytes_per_token(self) -> int:
        """KV of one token in all layers, index keys not included.

        Example:
            >>> load_model("llama-4-maverick").kv_bytes_per_token
            196608
        """
        return _kv_per_token(self).numerator

    @property
    def kv_bytes_per_token_beyond_window(self) -> int:
        """What a context grows by once every windowed layer is full: the unwindowed layers' KV."""
        return sum(
            (_group_bytes(self, g) * g.layers for g in self.layer_groups if g.window is None),
            start=Fraction(0),
        ).numerator

    @property
    def index_key_bytes_per_token(self) -> int:
        """Index keys of one token in all layers; 0 without sparse attention."""
        return _index_per_token(self).numerator

    @property
    def stored_bytes_per_token(self) -> int:
        """What one token occupies and writes: KV and index keys."""
        return self.kv_bytes_per_token + self.index_key_bytes_per_token

    def stored_bytes(self, tokens: int, windowed_kv: WindowedKv = "full") -> int:
        """What a context of `tokens` keeps in memory.

        ``trim``: a windowed layer keeps min(tokens, window) of them.

        Example:
            >>> model = load_model("llama-4-maverick")
            >>> model.stored_bytes(16384) // 16384, model.stored_bytes(16384, "trim") // 16384
            (196608, 122880)
        """
        if windowed_kv == "full":
            return tokens * self.stored_bytes_per_token
        kept = Fraction(0)
        for group in self.layer_groups:
            reach = tokens if group.window is None else min(tokens, group.window)
            kept += reach * group.layers * _group_bytes(self, group)
        return int(kept) + tokens * self.index_key_bytes_per_token

    @property
    def embedding_params(self) -> int:
        """Input embedding and LM head; one matrix where they are tied, else two."""
        return self.vocab * self.hidden * (1 if self.tied_embeddings else 2)

    @property
    def attention_params(self) -> int:
        """Projections of all attention layers, the sparse indexer included."""
        if self.mla is not None:
            return self.layers * (_latent_params(self, self.mla) + _indexer_params(self, self.mla))
        total = 0
        for group in self.layer_groups:
            query_and_output = 2 * self.heads * group.head_dim
            key_and_value = (2 if group.value_projection else 1) * group.kv_heads * group.head_dim
            total += group.layers * self.hidden * (query_and_output + key_and_value)
        return total

    @property
    def params_per_routed_expert(self) -> int:
        """Weights of one routed expert in one layer."""
        return self.ffn_matrices * self.hidden * self.expert_ffn

    @property
    def ffn_matrices(self) -> int:
        """Matrices in a feed-forward block: 3 when gated, else 2."""
        return 3 if self.gated_ffn else 2

    @property
    def routed_params(self) -> int:
        """Weights of all routed experts in all layers."""
        return self.moe_layers * self.experts * self.params_per_routed_expert

    @property
    def non_routed_params(self) -> int:
        """Everything else: attention, dense FFN, shared experts, router, embeddings."""
        dense = self.dense_layers * self.ffn_matrices * self.hidden * self.dense_ffn
        shared = self.shared_experts * self.ffn_matrices * self.hidden * self.shared_ffn
        router = self.hidden * self.experts
        moe = self.moe_layers * (shared + router)
        return self.attention_params + dense + moe + self.embedding_params

    @property
    def params(self) -> int:
        """All weights, embeddings included.

        Example:
            >>> f"{load_model('qwen3-235b-a22b').params / 1e9:.1f}"
            '235.1'
        """
        return self.routed_params + self.non_routed_params

    @property
    def active_params(self) -> int:
        """Weights that one token meets: all but the routed experts it is not sent to.

        Embeddings count in full, as in published "active" figures of this kind.
        """
        routed = self.moe_layers * self.experts_per_token * self.params_per_routed_expert
        return self.non_routed_params + routed

    @property
    def routed_weight_bytes(self) -> int:
        """Bytes of all routed experts."""
        return _whole_bytes(self.routed_params, self.weight_bytes_per_value)

    @property
    def non_routed_weight_bytes(self) -> int:
        """Bytes of all other weights."""
        return _whole_bytes(self.non_routed_params, self.weight_bytes_per_value)

    def weight_bytes_per_gpu(self, gpus: int) -> int:
        """Weights on the fullest GPU of a node.

        Attention is data parallel, so what is not a routed expert is on every GPU; the routed
        experts of a layer are dealt out (expert parallelism), and where they do not divide evenly
        the fullest GPU holds one more.

        Example:
            >>> f"{load_model('llama-4-maverick').weight_bytes_per_gpu(8) / 1e9:.1f}"
            '125.0'
        """
        experts_on_gpu = -(-self.experts // gpus)
        routed = self.moe_layers * experts_on_gpu * self.params_per_routed_expert
        return _whole_bytes(self.non_routed_params + routed, self.weight_bytes_per_value)


def load_model(name: str = DEFAULT_MODEL) -> ModelPreset:
    """Load a model by name, or from a TOML file of the user's (a path that ends in ``.toml``).

    Raises:
        InputError: unknown name, or a file that is missing, broken or inconsistent.

    Example:
        >>> [(g.layers, g.window) for g in load_model("llama-4-maverick").layer_groups]
        [(36, 8192), (12, None)]
    """
    return load_preset("models", name, ModelPreset)


def _common(numbers: list[int]) -> int | None:
    return numbers[0] if len(set(numbers)) == 1 else None


def _whole_bytes(values: int, bytes_per_value: float) -> int:
    # Rounded up: a last half byte of a 4-bit format still occupies a byte.
    exact = values * Fraction(bytes_per_value)
    return -(-exact.numerator // exact.denominator)


def _group_bytes(model: ModelPreset, group: LayerGroup) -> Fraction:
    """KV bytes of one token in one layer of a group.

    GQA keeps a key and a value, 2·h_kv·d; MLA keeps one latent, d (DeepSeek-V2, arXiv 2405.04434).
    """
    tensors = 1 if model.attention == "mla" else 2
    return tensors * group.kv_heads * group.head_dim * Fraction(model.kv_bytes_per_value)


def _kv_per_token(model: ModelPreset) -> Fraction:
    return sum(
        (_group_bytes(model, group) * group.layers for group in model.layer_groups),
        start=Fraction(0),
    )


def _index_per_token(model: ModelPreset) -> Fraction:
    if model.dsa is None:
        return Fraction(0)
    values = model.layers * model.dsa.indexer_head_dim
    return values * Fraction(model.dsa.index_key_bytes_per_value)


def _latent_params(model: ModelPreset, mla: LatentAttention) -> int:
    """MLA projections of one layer: query down and up, latent down, key/value up, output."""
    query_dim = mla.qk_nope_dim + mla.qk_rope_dim
    query = model.hidden * mla.q_lora_rank + mla.q_lora_rank * model.heads * query_dim
    latent = model.hidden * (mla.kv_lora_rank + mla.qk_rope_dim)
    expand = mla.kv_lora_rank * model.heads * (mla.qk_nope_dim + mla.v_dim)
    return query + latent + expand + model.heads * mla.v_dim * model.hidden


def _indexer_params(model: ModelPreset, mla: LatentAttention) -> int:
    """DSA indexer of one layer: query from the query latent, one key, a weight for each head."""
    if model.dsa is None:
        return 0
    query = mla.q_lora_rank * model.dsa.indexer_heads * model.dsa.indexer_head_dim
    return query + model.hidden * (model.dsa.indexer_head_dim + model.dsa.indexer_heads)
