"""How the shop stub words things in English and Polish: templates for values seen, and talk without any value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from compaction_lab.scenarios.laptop_catalog.vocabulary import Language


@dataclass(frozen=True, slots=True)
class Phrases:
    """One language's wordings; ``{name}``, ``{names}``, ``{value}``, ``{items}`` are filled with what was seen."""

    bullets: Mapping[str, str]
    sentences: Mapping[str, str]
    unknown: Mapping[str, str]
    suits: str
    limits: str
    list_lead: str
    below_lead: str
    below_none: str
    product_lead: str
    compare_lead: str
    recommend: str
    also: str
    reasons: str
    nothing_seen: str
    unknown_product: str
    lighter: str
    same_weight: str
    recap: str
    recap_empty: str
    final: str
    no_final: str
    money: str
    joiner: str
    closing: str
    talk: tuple[str, ...]


PHRASES: dict[Language, Phrases] = {
    "en": Phrases(
        bullets={
            "cpu": "Processor: {value}",
            "ram_gb": "RAM: {value} GB",
            "storage_gb": "Storage: {value} SSD",
            "display_in": "Screen: {value} inches",
            "resolution": "Resolution: {value}",
            "refresh_hz": "Refresh rate: {value} Hz",
            "gpu_gb": "Graphics: {value} GB VRAM",
            "battery_h": "Battery: up to {value} hours",
            "weight_kg": "Weight: {value} kg",
        },
        sentences={
            "cpu": "Inside the {name} works this processor: {value}.",
            "ram_gb": "The {name} has {value} GB of RAM, which sets how much can stay open at once.",
            "storage_gb": "Files on the {name} go to a {value} SSD.",
            "display_in": "The {name} has a {value}-inch screen.",
            "resolution": "The panel of the {name} shows {value} pixels.",
            "refresh_hz": "The panel of the {name} refreshes at {value} Hz.",
            "gpu_gb": "The {name} has its own graphics chip with {value} GB VRAM.",
            "battery_h": "On one charge the {name} runs for up to {value} hours.",
            "weight_kg": "On the scales the {name} shows {value} kg.",
        },
        unknown={
            "cpu": "I do not know which processor the {name} has; it is not in what I can see.",
            "ram_gb": "I do not know how much RAM the {name} has; it is not in what I can see.",
            "storage_gb": "I do not know how large the storage of the {name} is; it is not in what I can see.",
            "display_in": "I do not know the screen size of the {name}; it is not in what I can see.",
            "resolution": "I do not know the resolution of the {name}; it is not in what I can see.",
            "refresh_hz": "I do not know the refresh rate of the {name}; it is not in what I can see.",
            "gpu_gb": "I do not know how much graphics memory the {name} has; it is not in what I can see.",
            "battery_h": "I do not know how long the {name} runs on a charge; it is not in what I can see.",
            "weight_kg": "I do not know how heavy the {name} is; it is not in what I can see.",
        },
        suits="Well suited to: {items}.",
        limits="Not suited to: {items}.",
        list_lead="These are the models I see in the catalog:",
        below_lead="These models have a screen below {value} inches:",
        below_none="I see no model with a screen below {value} inches.",
        product_lead="Here is what the catalog says:",
        compare_lead="Here is how they compare by the catalog:",
        recommend="I recommend the {name}.",
        also="I also recommend the {name}.",
        reasons="The {name} is well suited to {items}.",
        nothing_seen="I do not know: I see no product data that would answer this.",
        unknown_product="I do not know anything about the {name}: I see no product data on it.",
        lighter="The lighter one is the {name}.",
        same_weight="Both show the same figure on the scales.",
        recap="In this conversation we considered these models: {names}.",
        recap_empty="I do not know what we discussed earlier: I see no part of the conversation that names a model.",
        final="In the end I recommend the {name}.",
        no_final="I see no earlier choice to repeat, so I leave the final one open.",
        money="The catalog data I see states neither prices nor stock, so I go by features only.",
        joiner=" and ",
        closing="Let me know if you would like more detail on any of this.",
        talk=(
            "It helps to think first about the tasks that fill most of your week and to let those decide.",
            "A machine that feels right in the hands is opened more often than one that only looks good on paper.",
            "If you are unsure between two models, compare the points you would notice every single day.",
            "Small differences in a table rarely matter as much as how comfortable the whole thing is to use.",
            "I would write down the three programs you start most often and check which model fits them best.",
            "Everything above comes from the catalog entry, so you can check each point there yourself.",
            "Where the catalog tells us nothing I would rather leave a gap than guess on your behalf.",
            "Please tell me how you plan to use it, and I can narrow the choice down further.",
            "It is worth leaving some headroom, because habits grow faster than most people expect.",
            "On the other hand, capacity that is never used only adds heat and bulk.",
            "Keep in mind that figures for endurance assume a gentle load and a dimmed panel.",
            "A calm look at the strengths and the weak points together usually settles the question.",
            "Many customers start from a wish list and then find that two or three points really decide.",
            "If several people share the machine, it makes sense to plan for the most demanding of them.",
            "Accessories such as a stand, a mouse or an external keyboard can change the comfort a great deal.",
            "An external monitor at home is another way to get more room without carrying it around.",
            "Think about where the charger will live, since that shapes how freely you move during the day.",
            "It also pays to check which connectors you need, as adapters are easily left behind.",
            "Should your needs change later, we can go through the same points again in a few minutes.",
            "I have kept to the points you asked about and added only what helps to place them.",
            "Seen as a whole, the picture is fairly clear, and no single figure tells the entire story.",
            "The right choice is the one whose compromises you will hardly ever notice.",
            "If one of these points is decisive for you, say so and I will weigh it more heavily.",
            "We can also set this beside another model, point by point, whenever you like.",
            "Try to picture an ordinary Tuesday and ask which of these properties you would actually feel.",
            "People who work in one place all day weigh these things differently from those who move around.",
            "Comfort over many hours comes from the keyboard, the panel and the temperature taken together.",
            "A good fit today should still be a good fit when the next few updates have arrived.",
            "The catalog describes the typical case, so unusual setups deserve a closer look.",
            "None of this has to be decided right now; the data will be the same tomorrow.",
            "For most people the first impression after a week of use matters more than any benchmark.",
            "It is fine to rule out models quickly; what remains is then much easier to judge.",
            "I can repeat any of these points in a shorter form if that is easier to pass on.",
            "When colleagues ask for advice, I begin with the same questions that I put to you here.",
            "Let the hardest regular task set the minimum and let everything else be a bonus.",
            "Once the main use is settled, the remaining differences are mostly a matter of taste.",
        ),
    ),
    "pl": Phrases(
        bullets={
            "cpu": "Procesor: {value}",
            "ram_gb": "Pamięć RAM: {value} GB",
            "storage_gb": "Dysk: SSD {value}",
            "display_in": "Ekran: {value}",
            "resolution": "Rozdzielczość: {value}",
            "refresh_hz": "Odświeżanie: {value} Hz",
            "gpu_gb": "Karta graficzna: {value} GB VRAM",
            "battery_h": "Bateria: do {value} godzin",
            "weight_kg": "Waga: {value} kg",
        },
        sentences={
            "cpu": "W modelu {name} pracuje taki procesor: {value}.",
            "ram_gb": "{name} ma {value} GB pamięci RAM, co decyduje o tym, ile może być otwarte naraz.",
            "storage_gb": "Pliki w modelu {name} trafiają na {value} SSD.",
            "display_in": "{name} ma ekran o przekątnej {value}.",
            "resolution": "Matryca modelu {name} pokazuje {value} pikseli.",
            "refresh_hz": "Matryca modelu {name} odświeża obraz z częstotliwością {value} Hz.",
            "gpu_gb": "{name} ma własny układ graficzny z {value} GB VRAM.",
            "battery_h": "Na jednym ładowaniu {name} działa do {value} godzin.",
            "weight_kg": "Na wadze {name} pokazuje {value} kg.",
        },
        unknown={
            "cpu": "Nie wiem, jaki procesor ma {name}; nie ma tego w tym, co widzę.",
            "ram_gb": "Nie wiem, ile pamięci RAM ma {name}; nie ma tego w tym, co widzę.",
            "storage_gb": "Nie wiem, jak duży dysk ma {name}; nie ma tego w tym, co widzę.",
            "display_in": "Nie wiem, jaką przekątną ma {name}; nie ma tego w tym, co widzę.",
            "resolution": "Nie wiem, jaką rozdzielczość ma {name}; nie ma tego w tym, co widzę.",
            "refresh_hz": "Nie wiem, jakie odświeżanie ma {name}; nie ma tego w tym, co widzę.",
            "gpu_gb": "Nie wiem, ile pamięci graficznej ma {name}; nie ma tego w tym, co widzę.",
            "battery_h": "Nie wiem, jak długo {name} działa na jednym ładowaniu; nie ma tego w tym, co widzę.",
            "weight_kg": "Nie wiem, ile waży {name}; nie ma tego w tym, co widzę.",
        },
        suits="Sprawdzi się w zakresie: {items}.",
        limits="Nie jest przeznaczony do: {items}.",
        list_lead="Oto modele, które widzę w katalogu:",
        below_lead="Te modele mają ekran poniżej {value}:",
        below_none="Nie widzę modelu z ekranem poniżej {value}.",
        product_lead="Oto, co podaje katalog:",
        compare_lead="Oto porównanie według katalogu:",
        recommend="Polecam {name}.",
        also="Polecam też {name}.",
        reasons="{name} sprawdzi się w zakresie: {items}.",
        nothing_seen="Nie wiem: nie widzę danych o produktach, które by na to odpowiadały.",
        unknown_product="Nie wiem nic o modelu {name}: nie widzę danych o tym produkcie.",
        lighter="Lżejszy jest {name}.",
        same_weight="Oba pokazują na wadze tyle samo.",
        recap="W tej rozmowie rozważaliśmy te modele: {names}.",
        recap_empty="Nie wiem, o czym była mowa wcześniej: nie widzę żadnej części rozmowy, która wymienia model.",
        final="Ostatecznie polecam {name}.",
        no_final="Nie widzę wcześniejszego wyboru do powtórzenia, więc ostateczny zostawiam otwarty.",
        money="Dane katalogu, które widzę, nie podają ani cen, ani stanów, więc kieruję się tylko cechami.",
        joiner=" i ",
        closing="Chętnie podam więcej szczegółów, jeśli będą potrzebne.",
        talk=(
            "Warto najpierw pomyśleć o zadaniach, które wypełniają większość tygodnia, i im oddać decyzję.",
            "Sprzęt, który dobrze leży w dłoniach, otwiera się częściej niż ten, który tylko dobrze wygląda w tabeli.",
            "Przy wahaniu między dwoma modelami warto zestawić to, co widać każdego dnia.",
            "Drobne różnice w tabeli rzadko znaczą tyle, ile wygoda całości.",
            "Dobrze jest spisać trzy najczęściej uruchamiane programy i sprawdzić, który model im odpowiada.",
            "Wszystko powyżej pochodzi z katalogu, więc każdy punkt można tam sprawdzić.",
            "Tam, gdzie katalog milczy, wolę przemilczeć niż zgadywać.",
            "Proszę napisać, jak sprzęt ma być używany, a zawężę wybór.",
            "Warto zostawić trochę zapasu, bo przyzwyczajenia rosną szybciej, niż się wydaje.",
            "Z drugiej strony zapas, którego nikt nie użyje, dodaje tylko ciepła i objętości.",
            "Trzeba pamiętać, że deklaracje wytrzymałości zakładają lekkie obciążenie i przyciemnioną matrycę.",
            "Spokojne spojrzenie na mocne i gorsze strony razem zwykle rozstrzyga sprawę.",
            "Wiele osób zaczyna od listy życzeń, a potem okazuje się, że decydują dwa lub trzy punkty.",
            "Jeśli ze sprzętu korzysta kilka osób, dobrze jest myśleć o najbardziej wymagającej z nich.",
            "Akcesoria, takie jak podstawka, mysz czy zewnętrzna klawiatura, potrafią bardzo zmienić wygodę.",
            "Zewnętrzny monitor w domu to inny sposób na więcej miejsca bez noszenia go ze sobą.",
            "Warto pomyśleć, gdzie będzie leżał zasilacz, bo to wpływa na swobodę w ciągu dnia.",
            "Opłaca się też sprawdzić, jakie złącza są potrzebne, bo przejściówki łatwo zostawić w domu.",
            "Gdyby potrzeby się zmieniły, w kilka minut przejdziemy przez te same punkty jeszcze raz.",
            "Trzymam się punktów z pytania i dodaję tylko to, co pomaga je umieścić w całości.",
            "Całość daje dość jasny obraz i żadna pojedyncza liczba nie opowiada wszystkiego.",
            "Dobry wybór to ten, którego kompromisów prawie się nie zauważa.",
            "Jeśli któryś z tych punktów jest decydujący, proszę o tym napisać, a dam mu większą wagę.",
            "W każdej chwili możemy też zestawić to punkt po punkcie z innym modelem.",
            "Proszę wyobrazić sobie zwykły wtorek i zapytać, którą z tych cech naprawdę będzie czuć.",
            "Kto siedzi cały czas w jednym miejscu, ocenia te rzeczy inaczej niż ktoś, kto się przemieszcza.",
            "Wygoda przez wiele godzin to wspólna zasługa klawiatury, matrycy i temperatury.",
            "To, co pasuje dzisiaj, powinno pasować także po kilku następnych aktualizacjach.",
            "Katalog opisuje typowy przypadek, więc nietypowe konfiguracje zasługują na uważniejsze spojrzenie.",
            "Niczego nie trzeba rozstrzygać teraz; jutro dane będą takie same.",
            "Dla większości osób wrażenie po tygodniu używania znaczy więcej niż jakikolwiek test.",
            "Można szybko odrzucić część modeli; resztę ocenia się wtedy znacznie łatwiej.",
            "Każdy z tych punktów mogę powtórzyć krócej, jeśli tak łatwiej go przekazać dalej.",
            "Gdy o radę pytają znajomi, zaczynam od tych samych pytań, które padają tutaj.",
            "Najtrudniejsze regularne zadanie niech wyznacza minimum, a reszta niech będzie dodatkiem.",
            "Gdy główny cel jest ustalony, pozostałe różnice są głównie sprawą gustu.",
        ),
    ),
}


def shown(attribute: str, value: str, language: Language) -> str:
    """Return a canonical value as one would write it in a language.

    >>> shown("weight_kg", "1.3", "pl"), shown("storage_gb", "1024", "en"), shown("cpu", "6-core", "pl")
    ('1,3', '1 TB', '6-rdzeniowy')
    """
    polish = language == "pl"
    if attribute == "cpu":
        return _processor(value, polish=polish)
    if attribute == "storage_gb" and value.isdigit():
        size_gb = int(value)
        return f"{size_gb // 1024} TB" if size_gb % 1024 == 0 else f"{size_gb} GB"
    if attribute == "weight_kg" and "." not in value:
        value = f"{value}.0"
    if polish and attribute == "display_in":
        return f"{value.replace('.', ',')} cala" if "." in value else f"{value} cali"
    return value.replace(".", ",") if polish and attribute == "weight_kg" else value


def _processor(value: str, *, polish: bool) -> str:
    if match := re.fullmatch(r"ryzen (\d)", value):
        return f"AMD Ryzen {match[1]}"
    if match := re.fullmatch(r"(i\d)(?: (\d+))?", value):
        if not match[2]:
            return f"Intel Core {match[1]}"
        return f"Intel Core {match[1]} ({match[2]}. gen)" if polish else f"Intel Core {match[1]} ({match[2]}th Gen)"
    if match := re.fullmatch(r"(\d+)-core", value):
        return f"{match[1]}-rdzeniowy" if polish else value
    if value == "low-power":
        return "energooszczędny układ" if polish else "low-power chip"
    return value
