"""The shop's two tools; both really run over the catalog they are given."""

from __future__ import annotations

from collections.abc import Mapping

from compaction_lab.conversation.messages import JSON, ToolDefinition
from compaction_lab.scenarios.base import LiveTool
from compaction_lab.scenarios.laptop_catalog.catalog import Catalog


def tools(catalog: Catalog) -> tuple[LiveTool, ...]:
    """Return ``get_products`` and ``get_product_details`` over a catalog."""

    def list_products(_: Mapping[str, JSON]) -> str:
        return catalog.as_json()

    def show_product(arguments: Mapping[str, JSON]) -> str:
        name = arguments.get("name")
        product = catalog.find(name) if isinstance(name, str) else None
        if product is None:
            return f"Product not found: {name!r}. Call get_products for the names of all products."
        return product.as_json()

    return (
        LiveTool(
            ToolDefinition(
                "get_products",
                "List every product of the catalog with its short summary.",
                {"type": "object", "properties": {}, "additionalProperties": False},
            ),
            list_products,
        ),
        LiveTool(
            ToolDefinition(
                "get_product_details",
                "Return one product's summary and long description.",
                {
                    "type": "object",
                    "properties": {"name": {"type": "string", "description": "Product name, in any case."}},
                    "required": ["name"],
                    "additionalProperties": False,
                },
            ),
            show_product,
        ),
    )
