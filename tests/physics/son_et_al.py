"""Published figures of Son et al. (IEEE CAL 25(2) 251-254): Llama 4 Maverick on eight GPUs with
7 x 512 GiB of flash each, BF16, no write amplification."""

from __future__ import annotations

from dataclasses import dataclass

FLASH_BYTES = 7 * 512 * 2**30
CHUNK = 8192
FULL_LAYER_BYTES = 12 * 2 * 8 * 128 * 2  # a token's KV in the layers of full reach
CHUNKED_LAYER_BYTES = 36 * 2 * 8 * 128 * 2
GPUS = 8


@dataclass(frozen=True)
class Serving:
    """One of the three workloads: tokens of prompt and output, and what was published for it."""

    prompt: int
    output: int
    batch_per_gpu: float
    tokens_per_s_per_gpu: float
    cycles_after_3_years: float

    @property
    def step_s(self) -> float:
        """Every running request gets a token a step."""
        return self.batch_per_gpu / self.tokens_per_s_per_gpu

    @property
    def bytes_per_request(self) -> int:
        """Written KV; chunked layers keep the last chunk of the prompt only."""
        full = (self.prompt + self.output) * FULL_LAYER_BYTES
        return full + (min(self.prompt, CHUNK) + self.output) * CHUNKED_LAYER_BYTES

    @property
    def bytes_per_s_per_gpu(self) -> float:
        return self.tokens_per_s_per_gpu / self.output * self.bytes_per_request


SERVINGS = (
    Serving(1660, 373, 1679.7, 16_807, 439_931),
    Serving(5900, 499, 623.4, 6_279, 392_985),
    Serving(103_500, 1100, 139.7, 1_390, 200_000),
)
