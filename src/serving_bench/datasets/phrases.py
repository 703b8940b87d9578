"""Word lists and sentence templates of the voice-agent generator."""

from __future__ import annotations

AGENTS: tuple[tuple[str, str], ...] = (
    ("Harbor Desk", "You look after hotel guests: bookings, late arrivals, rooms, parking and breakfast."),
    ("Ledger Line", "You look after bank customers: cards, transfers, statements, limits and fraud alerts."),
    ("Clinic Front", "You look after patients of a clinic: appointments, referrals, results and prescriptions."),
    ("Freight Watch", "You look after shippers: pick-ups, customs papers, delays, claims and proof of delivery."),
    ("Grid Helper", "You look after households: meters, outages, tariffs, moving house and payment plans."),
    ("Campus Guide", "You look after students: courses, fees, rooms, exams, library cards and transcripts."),
    ("Fleet Care", "You look after drivers of hired cars: breakdowns, extensions, tolls, damage and returns."),
    ("Night Porter", "You look after residents of a building: keys, noise, parcels, lifts and visitors at night."),
    ("Ticket Window", "You look after concert and theatre goers: seats, refunds, wheelchair places and lost tickets."),
    ("Claims Desk", "You look after insured people: accidents, documents, experts, payments and deadlines."),
    ("Garden Gate", "You look after customers of a nursery: orders, planting advice, delivery and replacements."),
    ("Signal Room", "You look after internet customers: outages, routers, speed, technicians and contracts."),
)

SLOTS: dict[str, tuple[str, ...]] = {
    "thing": ("booking", "transfer", "visit", "bill", "delivery", "refund", "card", "contract", "request"),
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "tomorrow", "next week"),
    "time": ("at nine", "at half past ten", "around noon", "before four", "after six", "in the evening", "at eight"),
    "place": ("the main office", "the second floor", "the harbor branch", "the north gate", "my address", "the lobby"),
    "amount": ("twelve", "forty two", "ninety", "one hundred and five", "three hundred", "two thousand", "seven"),
    "detail": ("postal code", "date of birth", "phone number", "e-mail address", "reference", "last four digits"),
    "mood": ("calm", "friendly", "brief", "patient", "precise", "warm", "formal", "plain"),
    "way": ("by phone", "by message", "in writing", "in person", "through the portal", "by letter"),
}

RULES: tuple[str, ...] = (
    "Stay {mood} and {mood}, and never let a sentence run longer than a caller can remember when {thing}s pile up.",
    "Before you change a {thing}, read back the {detail} and wait until the caller has said yes to it in clear words.",
    "If a caller names {day} {time}, repeat the day and the time once, then offer one other slot and no more than one.",
    "When a {thing} costs more than {amount}, say the sum first, then the reason, and ask whether to go on {way}.",
    "Never read out a full {detail}; the first and the last part are enough for the caller to know it.",
    "If the line is poor, ask for the {detail} again, spell it back slowly and go on {way} when it fails twice.",
    "A caller who asks for {place} gets directions in three steps at the most, with the nearest entrance named first.",
    "Hand the call over when the {thing} belongs to another desk, and tell the next agent what was already agreed.",
    "Write down every promise about a {thing}: what was promised, until {day}, and {way} the caller will hear of it.",
    "Do not guess. If the {thing} is not found under the {detail}, say so and ask for one more thing to search with.",
    "End each call with the next step, the day on which it happens, and the way to reach {place} if it does not.",
    "When two {thing}s are open at once, finish the older one first unless the caller says that the newer is urgent.",
)

RECORD: tuple[str, ...] = (
    "Called on {day} {time} about a {thing}; settled {way}, nothing open.",
    "Asked for the {thing} to be sent to {place}; done on {day}.",
    "Prefers to be reached {way}, best {time}; not on {day}.",
    "Paid {amount} for a {thing}; the receipt went out {way}.",
    "Changed the {detail} on {day}; confirmed {way}.",
    "Complained about a {thing} at {place}; {amount} were paid back on {day}.",
)

CALLER: tuple[str, ...] = (
    "I am calling about my {thing}, it was meant for {day} {time} and nobody has told me whether that still holds.",
    "Could you move the {thing} to {day}, preferably {time}, and confirm it {way}?",
    "My {detail} has changed since the last {thing}, so please update it before you send anything to {place}.",
    "I was charged {amount} for the {thing} and I expected {amount}, can you see where the difference comes from?",
    "Is it possible to pick it up from {place} {time} instead?",
    "Yes, that is right, and please note that {day} does not work for me.",
    "Sorry, the line broke up, can you say the last part about the {thing} again?",
    "Someone told me {way} that the {thing} would be closed by {day}, but it still shows as open.",
    "How long does a {thing} like this take when everything goes well?",
    "Then let us keep it {time} on {day}, and send the papers to {place}.",
    "What do you need from me besides the {detail}?",
    "I have {amount} of them, does that change anything for the {thing}?",
)

FIRST_NAMES: tuple[str, ...] = (
    "Ada", "Bram", "Chiara", "Dmitri", "Elif", "Farah", "Goran", "Hana", "Ivo", "Jamila", "Kofi", "Lena",
    "Mateo", "Nadia", "Oskar", "Priya", "Quentin", "Rosa", "Samir", "Tove", "Umar", "Vera", "Wanda", "Yusuf",
)  # fmt: skip

LAST_NAMES: tuple[str, ...] = (
    "Abel", "Brook", "Castillo", "Dahl", "Egan", "Fiala", "Grau", "Holm", "Ibarra", "Jansen", "Kovac", "Lund",
    "Moreau", "Nagy", "Okafor", "Petrov", "Quist", "Rossi", "Silva", "Tanaka", "Urban", "Varga", "Weiss", "Zeman",
)  # fmt: skip

TOOLS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("find_record", "Look a caller up. Use it before anything is said about a case.", ("reference", "detail")),
    ("list_cases", "List what is open for a caller, the oldest first.", ("reference", "thing")),
    ("list_slots", "List free times for a thing at a place.", ("thing", "place", "day")),
    ("book_slot", "Book one of the free times. Use it after the caller has said yes.", ("thing", "day", "time")),
    ("cancel_case", "Cancel a thing. Say first what it costs.", ("reference", "thing", "amount")),
    ("quote_price", "Work out what a change costs, with the reason.", ("thing", "amount")),
    ("send_papers", "Send papers to the caller.", ("reference", "way", "place")),
    ("hand_over", "Hand the call to another desk, with what was agreed.", ("reference", "thing", "mood")),
)
"""Name, what it is for, and the slots that are its arguments."""
