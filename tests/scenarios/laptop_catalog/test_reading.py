"""Facts are read from the ways in which people and models write them."""

from __future__ import annotations

import pytest

from compaction_lab.scenarios.laptop_catalog.reading import product_names, read


def stated(text: str) -> set[tuple[str, str, str]]:
    return {(f.product, f.attribute, f.value) for f in read(text)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The DevBook 15 weighs 2.1 kg.", ("DevBook 15", "weight_kg", "2.1")),
        ("DevBook 15 waży 2,1 kg.", ("DevBook 15", "weight_kg", "2.1")),
        ("### DevBook 15\n\n- **RAM:** 32 GB", ("DevBook 15", "ram_gb", "32")),
        ("DevBook 15 ma 32 GB pamięci RAM", ("DevBook 15", "ram_gb", "32")),
        ("The DevBook 15 comes with a 1TB SSD", ("DevBook 15", "storage_gb", "1024")),
        ("The DevBook 15 comes with 1000 GB of storage", ("DevBook 15", "storage_gb", "1024")),
        ("DevBook 15: Core i7 (13. generacji)", ("DevBook 15", "cpu", "i7 13")),
        ("DevBook 15: 15,6-calowy ekran 2560 × 1440", ("DevBook 15", "resolution", "2560x1440")),
        ("The Gaming Max 17 has a 14-core CPU", ("Gaming Max 17", "cpu", "14-core")),
        ("The Gaming Max 17 has 12 GB VRAM", ("Gaming Max 17", "gpu_gb", "12")),
        (
            "| | DevBook 15 | Gaming Max 17 |\n|---|---|---|\n| Battery | 7 h | 4 h |",
            ("Gaming Max 17", "battery_h", "4"),
        ),
        ("| Model | Weight |\n|---|---|\n| DevBook 15 | 2.1 kg |", ("DevBook 15", "weight_kg", "2.1")),
        ("The Laptop Pro 14 has 12 hours, the DevBook 15 has 7 hours.", ("DevBook 15", "battery_h", "7")),
        ("The DevBook 15 is not suited to travel.", ("DevBook 15", "limits", "travel")),
        ("I recommend the DevBook 15.", ("DevBook 15", "recommended", "yes")),
    ],
)
def test_a_statement_is_read(text: str, expected: tuple[str, str, str]) -> None:
    assert expected in stated(text)


@pytest.mark.parametrize(
    ("text", "never"),
    [
        ("The Laptop Pro 14 is 0.8 kg lighter than the DevBook 15.", "weight_kg"),
        ("The Gaming Max 17 has 12 GB VRAM", "ram_gb"),
        ("The DevBook 15 has 32 GB RAM, 1 TB SSD", "gpu_gb"),
        ("DevBook 15\n---\nWeight: 2.1 kg", "weight_kg"),
        ("Which one weighs 2.1 kg?", "weight_kg"),
    ],
)
def test_what_is_not_stated_of_a_product_is_not_read(text: str, never: str) -> None:
    assert never not in {attribute for _, attribute, _ in stated(text)}


def test_a_name_does_not_swallow_the_word_before_it() -> None:
    assert [name for _, _, name in product_names("Compare Laptop Pro 14 with UltraLite 13, i7 (13th Gen).")] == [
        "Laptop Pro 14",
        "UltraLite 13",
    ]
