"""The words of the shop in English and Polish: product attributes and what laptops are used for.

Only wordings live here, never a value of the catalog, so a reader of answers and a stub may both use them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Language = Literal["en", "pl"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """A measurable property of a laptop; ``asked`` matches a question about it in either language."""

    id: str
    en: str
    pl: str
    asked: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Topic:
    """Something a laptop does or does not suit; ``found`` matches a mention in either language."""

    id: str
    en: str
    pl: str
    found: re.Pattern[str]


def _attribute(name: str, en: str, pl: str, asked: str) -> Attribute:
    return Attribute(name, en, pl, re.compile(asked, re.IGNORECASE))


def _topic(name: str, en: str, pl: str, found: str) -> Topic:
    return Topic(name, en, pl, re.compile(found, re.IGNORECASE))


ATTRIBUTES: dict[str, Attribute] = {
    a.id: a
    for a in (
        _attribute("cpu", "Processor", "Procesor", r"\bprocessor\b|\bCPU\b|\bprocesor"),
        _attribute("ram_gb", "RAM", "Pamięć RAM", r"\bRAM\b|\bmemory\b|\bpamięci?\b"),
        _attribute("storage_gb", "Storage", "Dysk", r"\bstorage\b|\bSSD\b|\bdrive\b|\bdysk"),
        _attribute("display_in", "Screen size", "Przekątna ekranu", r"\bdisplay\b|\bscreen\b|\bekran|przekątn"),
        _attribute("resolution", "Resolution", "Rozdzielczość", r"\bresolution\b|\bdisplay\b|rozdzielczo|\bekran"),
        _attribute("refresh_hz", "Refresh rate", "Odświeżanie", r"\brefresh|odświeżani"),
        _attribute("gpu_gb", "Graphics memory", "Pamięć karty graficznej", r"\bgraphics\b|\bGPU\b|\bVRAM\b|graficzn"),
        _attribute("battery_h", "Battery", "Bateria", r"\bbattery\b|\bbateri"),
        _attribute("weight_kg", "Weight", "Waga", r"\bweigh|\bwag[aęi]\b|\bważy|\bmasa\b|\blighter\b|\blżejsz"),
    )
}

TOPICS: dict[str, Topic] = {
    t.id: t
    for t in (
        _topic("dotnet", ".NET development", "programowanie w .NET", r"\.NET\b(?! solutions)"),
        _topic("web", "web development", "tworzenie stron i aplikacji webowych", r"\bweb develop|\bweb app|webow"),
        _topic(
            "light_development", "light development", "lekkie programowanie", r"light development|lekki\w* programowa"
        ),
        _topic("mobile_work", "mobile work", "praca mobilna", r"mobile work|prac\w+ mobiln|mobile developer"),
        _topic(
            "programming",
            "programming",
            "programowanie",
            r"(?<!introductory )\bprogramming\b|software dev"
            r"|(?<!nauka )(?<!nauki )(?<!lekkie )programowani\w+(?! w \.NET)",
        ),
        _topic("backend", "a light backend", "lekki backend", r"back-?end"),
        _topic("frontend", "frontend work", "praca nad frontendem", r"front-?end"),
        _topic(
            "visual_studio", "Visual Studio and VS Code", "Visual Studio i VS Code", r"\bVisual Studio\b|\bVS Code\b"
        ),
        _topic("containers", "Docker containers", "kontenery Docker", r"\bDocker\b|\bcontainers?\b|kontener"),
        _topic("microservices", "local microservices", "lokalne mikroserwisy", r"microservice|mikroserwis|mikrousług"),
        _topic("databases", "databases", "bazy danych", r"\bdatabases?\b|\bba[zy]\w* danych"),
        _topic(
            "large_solutions",
            "large solutions",
            "duże rozwiązania",
            r"\b(?:large|larger|huge|big)(?: \.NET)? (?:solutions?|code ?bases?|projects?)\b"
            r"|\b(?:duż|większ|wielk)\w+ (?:rozwiąza|solucj|projekt)",
        ),
        _topic(
            "big_data",
            "large-scale data processing",
            "przetwarzanie danych na dużą skalę",
            r"large-scale data|big data|danych na dużą skalę|duż\w+ zbior\w+ danych",
        ),
        _topic(
            "moderate_multitasking",
            "moderate multitasking",
            "umiarkowana wielozadaniowość",
            r"moderate multitask|umiarkowan\w+ wielozada",
        ),
        _topic(
            "multitasking",
            "heavy multitasking",
            "intensywna wielozadaniowość",
            r"heavy multitask|demanding multitask|intensywn\w+ wielozada",
        ),
        _topic("balance", "balanced everyday use", "zrównoważone, codzienne użycie", r"\bbalanced?\b|zrównoważon"),
        _topic(
            "working_day", "a full working day", "cały dzień pracy", r"(?:full|whole) working day|cał\w+ dzień prac"
        ),
        _topic("raw_performance", "raw performance", "surowa wydajność", r"raw performance|surow\w+ wydajno"),
        _topic("documents", "documents", "dokumenty", r"\bdocuments?\b|dokument"),
        _topic("presentations", "presentations", "prezentacje", r"\bpresentations?\b|prezentacj"),
        _topic("mail", "mail", "poczta", r"\be?-?mails?\b|poczt"),
        _topic("notes", "notes", "notatki", r"\bnotes\b|note-taking|notat"),
        _topic("browsing", "browsing", "przeglądanie internetu", r"\bbrowsing\b|przeglądani"),
        _topic("cloud", "cloud tools", "narzędzia w chmurze", r"\bcloud\b|chmur"),
        _topic(
            "schoolwork",
            "light schoolwork",
            "proste zadania szkolne",
            r"schoolwork|szkoln|\bstudents?\b|\bstude(?:nt|nc)",
        ),
        _topic(
            "video_calls", "video calls", "wideorozmowy", r"video (?:call|conferenc|meeting)|wideorozm|rozm\w+ wideo"
        ),
        _topic(
            "intro_coding",
            "introductory coding",
            "nauka programowania",
            r"introductory (?:coding|programming)|nau(?:k|c)\w+ programowania",
        ),
        _topic(
            "ram_upgrade",
            "a later RAM upgrade",
            "późniejsza rozbudowa RAM",
            r"(?:RAM|memory) upgrade|upgrade the (?:RAM|memory)|rozbudow\w+ (?:RAM|pamięci)",
        ),
        _topic("gaming", "gaming", "gry", r"\bgam(?:e|es|ing|ers?)\b|\bgr(?:y|ach|ania|anie|ami)\b|\bgier\b"),
        _topic("esports", "esports", "e-sport", r"\be-?sport"),
        _topic("3d", "3D work", "grafika 3D", r"\b3D\b"),
        _topic(
            "video_editing",
            "video editing",
            "montaż wideo",
            r"video edit|edit\w* (?:of )?video|montaż\w* (?:wideo|film)",
        ),
        _topic("photo", "photo editing", "obróbka zdjęć", r"\bphotos?\b|\bphotograph|\bzdję"),
        _topic("design", "design files", "projekty graficzne", r"\bdesign\b|projekt\w* graficzn"),
        _topic("rendering", "rendering", "renderowanie", r"\brendering\b|renderowani"),
        _topic("builds", "sustained builds", "długie kompilacje", r"(?:sustained|long) builds?|dług\w+ kompilacj"),
        _topic("llm", "local LLM inference", "lokalne modele językowe", r"\bLLMs?\b|modele? językow|modeli językow"),
        _topic("silence", "silence", "cisza", r"\bsilen(?:ce|t)\b|\bquiet\b|\bfanless\b|\bcisz|\bcich\w+|bezgłośn"),
        _topic("travel", "travel", "podróże", r"\btravel|podróż"),
        _topic("commuting", "commuting", "codzienne dojazdy", r"\bcommut|dojazd"),
        _topic("portability", "portability", "mobilność", r"\bportab|ultra-?portab|\bmobility\b|mobilnoś|przenośn"),
        _topic("long_battery", "battery life", "czas pracy na baterii", r"\bbattery life\b|czas\w* pracy na baterii"),
        _topic(
            "unplugged",
            "all-day unplugged use",
            "cały dzień bez zasilacza",
            r"unplugged|away from a socket all day|bez zasila|bez gniazdka",
        ),
    )
}
