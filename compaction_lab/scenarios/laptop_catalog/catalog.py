"""The eight laptops: prose around facts that are kept apart, so that a changed fact changes the text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from compaction_lab.errors import ConfigurationError
from compaction_lab.scenarios.laptop_catalog.reading import canonical

PROBED = ("cpu", "ram_gb", "storage_gb", "resolution", "battery_h", "weight_kg", "gpu_gb")
"""Attributes that probes ask about; a product without one (most have no discrete graphics) is not asked."""


@dataclass(frozen=True, slots=True)
class Product:
    """One laptop.

    Parameters
    ----------
    name
        Unique name; lookups ignore case and spacing.
    facts
        Shown value by attribute (``{"weight_kg": "1.3", "storage_gb": "512 GB", ...}``).
    suits, limits
        Topics of the vocabulary it is and is not made for, as its description says.
    summary_template, description_template
        Texts with ``{attribute}`` where a fact stands.
    evidence_templates
        By attribute, the shortest span of the description that holds the fact and stands in no other product's.
    """

    name: str
    facts: Mapping[str, str]
    suits: tuple[str, ...]
    limits: tuple[str, ...]
    summary_template: str
    description_template: str
    evidence_templates: Mapping[str, str]

    @property
    def short_summary(self) -> str:
        """One line."""
        return self.summary_template.format_map(self.facts)

    @property
    def long_description(self) -> str:
        """Prose and a bulleted block of specifications."""
        return self.description_template.format_map(self.facts)

    def evidence(self, attribute: str) -> str:
        """Return the span of the description that holds a fact."""
        return self.evidence_templates[attribute].format_map(self.facts)

    def value(self, attribute: str) -> str | None:
        """Return a fact's canonical value, or ``None`` when the catalog does not state it."""
        shown = self.facts.get(attribute)
        return None if shown is None else canonical(attribute, shown)

    def as_json(self) -> str:
        """Return the product as the tool shows it: indented JSON with three string fields."""
        shown = {"name": self.name, "shortSummary": self.short_summary, "longDescription": self.long_description}
        return json.dumps(shown, indent=2, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Catalog:
    """The products, in the order the shop lists them."""

    products: tuple[Product, ...]

    def find(self, name: str) -> Product | None:
        """Return the product of that name, ignoring case and spacing, or ``None``."""
        wanted = "".join(name.split()).casefold()
        return next((p for p in self.products if "".join(p.name.split()).casefold() == wanted), None)

    def product(self, name: str) -> Product:
        """Return the product of that name or raise `ConfigurationError` with the names there are."""
        found = self.find(name)
        if found is None:
            known = ", ".join(p.name for p in self.products)
            raise ConfigurationError(f"laptop catalog: no product {name!r}; there are: {known}")
        return found

    def with_fact(self, name: str, attribute: str, shown: str) -> Catalog:
        """Return a catalog in which one fact reads differently, everywhere it stands."""
        product = self.product(name)
        if attribute not in product.facts:
            known = ", ".join(product.facts)
            raise ConfigurationError(f"laptop catalog: {product.name} has no fact {attribute!r}; it has: {known}")
        changed = replace(product, facts={**product.facts, attribute: shown})
        return Catalog(tuple(changed if p is product else p for p in self.products))

    @property
    def names(self) -> tuple[str, ...]:
        """The products' names."""
        return tuple(p.name for p in self.products)

    def as_json(self) -> str:
        """Return names and short summaries as the list tool shows them."""
        return json.dumps(
            [{"name": p.name, "shortSummary": p.short_summary} for p in self.products], indent=2, ensure_ascii=False
        )


@cache
def load_catalog() -> Catalog:
    """Return the catalog that ships with the package."""
    text = resources.files(__package__).joinpath("data/products.json").read_text(encoding="utf-8")
    return Catalog(
        tuple(
            Product(
                name=record["name"],
                facts=record["facts"],
                suits=tuple(record["suits"]),
                limits=tuple(record["limits"]),
                summary_template=record["shortSummary"],
                description_template=record["longDescription"],
                evidence_templates=record["evidence"],
            )
            for record in json.loads(text)
        )
    )
