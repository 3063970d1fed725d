"""What an answer cost, by the price list that comes with genai-prices. Nothing is looked up on a network."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_ai.usage import RequestUsage


def compute_cost(usage: "RequestUsage", provider: str, model: str) -> float | None:
    """US dollars; None where no price is known."""
    from genai_prices import calc_price  # noqa: PLC0415

    try:
        return float(calc_price(usage, model, provider_id=provider).total_price)
    except (LookupError, ValueError):
        return None
