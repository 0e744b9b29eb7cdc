"""The interactive plots: what each shows, as data and layout that Plotly's JavaScript draws."""
