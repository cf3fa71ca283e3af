"""What the header of a quoted e-mail looks like, in the languages and the forms of mail programs; and what is none."""

# ruff: noqa: RUF001 (the words of many languages)

from __future__ import annotations

from math import inf
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.commands import texts
from bot.commands.grammar import BadCommand, parse
from bot.commands.spec import CommandRegistry, CommandSpec
from bot.github.text.earlier_mail import earlier_mail
from bot.github.text.mentions import parse_ccs
from handlers.teams.topics import listed_topics

REGISTRY = CommandRegistry([CommandSpec(name="merge", summary="Merge.", example="merge", feature="")])


class MailLanguage(NamedTuple):
    """The words of mail programs in a language.

    `labels`: sender, date, recipient, subject. `sentences` and `titles` are what stands above a quoted mail.
    """

    labels: tuple[str, str, str, str]
    sentences: tuple[str, ...]
    titles: tuple[str, ...]


# fmt: off
LANGUAGES = {
    "en": MailLanguage(
        ("From", "Sent", "To", "Subject"),
        (
            "On Wed, Nov 25, 2026 at 3:04 PM {who} wrote:", "On 25 Nov 2026, at 15:04, {who} wrote:",
            "On 25/11/2026 15:04, {who} wrote:", "On Wednesday, November 25, 2026 at 03:04:05 PM GMT+1, {who} wrote:",
            "On Wednesday, November 25th, 2026 at 15:04, {who} wrote:", "{who} wrote on 25/11/2026 15:04:",
            'At 2026-11-25 15:04:05, "{who}" wrote:', "---- On Wed, 25 Nov 2026 15:04:05 +0100 {who} wrote ----",
        ),
        ("-----Original Message-----", "-------- Original message --------", "------- Original Message -------",
         "---------- Forwarded message ---------", "Begin forwarded message:", "---- Replied Message ----"),
    ),
    "de": MailLanguage(
        ("Von", "Gesendet", "An", "Betreff"),
        (
            "Am Mi., 25. Nov. 2026 um 15:04 Uhr schrieb {who}:", "Am 25.11.2026 um 15:04 schrieb {who}:",
            "Am Mittwoch, 25. November 2026 um 15:04:05 MEZ hat {who} Folgendes geschrieben:",
            "Am 25. November schrieb {who}:", "---- Am Mi, 25 Nov 2026 15:04:05 +0100 schrieb {who} ----",
        ),
        ("-----Ursprüngliche Nachricht-----", "-------- Original-Nachricht --------",
         "-------- Weitergeleitete Nachricht --------", "Anfang der weitergeleiteten Nachricht:"),
    ),
    "fr": MailLanguage(
        ("De ", "Envoyé ", "À ", "Objet "),
        ("Le mer. 25 nov. 2026 à 15:04, {who} a écrit :", "Le 25/11/2026 à 15:04, {who} a écrit :",
         "Le 25 nov. 2026 à 15h04, {who} a écrit :"),
        ("-----Message d'origine-----", "-------- Message original --------", "-------- Message transféré --------",
         "Début du message transféré :"),
    ),
    "es": MailLanguage(
        ("De", "Enviado el", "Para", "Asunto"),
        ("El mié, 25 nov 2026 a las 15:04, {who} escribió:", "El 25/11/26 a las 15:04, {who} escribió:"),
        ("-----Mensaje original-----", "-------- Mensaje reenviado --------", "Inicio del mensaje reenviado:"),
    ),
    "it": MailLanguage(
        ("Da", "Inviato", "A", "Oggetto"),
        ("Il giorno mer 25 nov 2026 alle ore 15:04 {who} ha scritto:", "Il 25/11/2026 15:04, {who} ha scritto:"),
        ("-----Messaggio originale-----", "-------- Messaggio Inoltrato --------", "Inizio messaggio inoltrato:"),
    ),
    "nl": MailLanguage(
        ("Van", "Verzonden", "Aan", "Onderwerp"),
        ("Op wo 25 nov 2026 om 15:04 schreef {who}:", "Op 25-11-2026 om 15:04 schreef {who}:",
         "Op 25 nov 2026 om 15:04 heeft {who} het volgende geschreven:"),
        ("-----Oorspronkelijk bericht-----", "-------- Doorgestuurd bericht --------", "Begin doorgestuurd bericht:"),
    ),
    "pt": MailLanguage(
        ("De", "Enviada em", "Para", "Assunto"),
        ("Em qua., 25 de nov. de 2026 às 15:04, {who} escreveu:", "Em 25/11/2026 15:04, {who} escreveu:"),
        ("-----Mensagem original-----", "-------- Mensagem encaminhada --------", "Início da mensagem encaminhada:"),
    ),
    "pl": MailLanguage(
        ("Od", "Wysłano", "Do", "Temat"),
        ("śr., 25 lis 2026 o 15:04 {who} napisał(a):", "W dniu 25.11.2026 o 15:04, {who} pisze:",
         "Dnia 25 listopada 2026 15:04 {who} napisał(a):"),
        ("-----Wiadomość oryginalna-----", "--- Treść przekazanej wiadomości ---",
         "Początek przekazywanej wiadomości:"),
    ),
    "ru": MailLanguage(
        ("От", "Отправлено", "Кому", "Тема"),
        ("ср, 25 нояб. 2026 г. в 15:04, {who}:", "25.11.2026 15:04, {who} пишет:",
         "Среда, 25 ноября 2026, 15:04 +03:00 от {who} написал(а):"),
        ("-----Исходное сообщение-----", "-------- Перенаправленное сообщение --------",
         "Начало переадресованного сообщения:"),
    ),
    "uk": MailLanguage(
        ("Від", "Надіслано", "Кому", "Тема"),
        ("ср, 25 лист. 2026 р. о 15:04 {who} пише:",),
        ("-------- Переслане повідомлення --------",),
    ),
    "zh": MailLanguage(
        ("发件人", "发送时间", "收件人", "主题"),
        ("{who} 于2026年11月25日周三 15:04写道：", "在 2026年11月25日，下午3:04，{who} 写道：",
         '在 2026-11-25 15:04:05，"{who}" 写道：'),
        ("------------------ 原始邮件 ------------------", "------------------&nbsp;原始邮件&nbsp;------------------",
         "---- 回复的原邮件 ----", "-----邮件原件-----", "---------- 转发的邮件 ----------"),
    ),
    "zh-TW": MailLanguage(
        ("寄件者", "寄件日期", "收件者", "主旨"),
        ("{who} 於 2026年11月25日 週三 下午3:04寫道：",),
        ("-----原始郵件-----",),
    ),
    "ja": MailLanguage(
        ("差出人", "送信日時", "宛先", "件名"),
        ("2026年11月25日(水) 15:04 {who}:", "2026/11/25 15:04、{who}のメール：",
         "On 2026/11/25 15:04, {who} wrote:", "{who} さんは 2026/11/25 15:04 に書きました:"),
        ("-----元のメッセージ-----", "-------- 転送メッセージ --------"),
    ),
    "ko": MailLanguage(
        ("보낸 사람", "보낸 날짜", "받는 사람", "제목"),
        ("2026년 11월 25일 (수) 오후 3:04, {who}님이 작성:", "2026. 11. 25. 오후 3:04, {who} 작성:",
         "2026-11-25 15:04에 {who} 이(가) 쓴 글:"),
        ("-----원본 메시지-----", "-------- 전달된 메시지 --------"),
    ),
    "sv": MailLanguage(
        ("Från", "Skickat", "Till", "Ämne"),
        ("Den ons 25 nov. 2026 kl 15:04 skrev {who}:", "25 nov. 2026 kl. 15:04 skrev {who}:"),
        ("-----Ursprungligt meddelande-----", "-------- Vidarebefordrat meddelande --------",
         "Vidarebefordrat mejl:"),
    ),
    "da": MailLanguage(
        ("Fra", "Sendt", "Til", "Emne"),
        ("Den ons. 25. nov. 2026 kl. 15.04 skrev {who}:",),
        ("-----Oprindelig meddelelse-----",),
    ),
    "no": MailLanguage(
        ("Fra", "Dato", "Til", "Emne"),
        ("ons. 25. nov. 2026 kl. 15:04 skrev {who}:", "{who} skrev følgende den 25.11.2026 15:04:"),
        ("-----Opprinnelig melding-----", "-------- Videresendt melding --------"),
    ),
    "fi": MailLanguage(
        ("Lähettäjä", "Lähetetty", "Vastaanottaja", "Aihe"),
        ("ke 25. marrask. 2026 klo 15.04 {who} kirjoitti:",),
        ("-----Alkuperäinen viesti-----", "Välitetty viesti alkaa:"),
    ),
    "tr": MailLanguage(
        ("Kimden", "Gönderilen", "Kime", "Konu"),
        ("{who}, 25 Kas 2026 Çar, 15:04 tarihinde şunu yazdı:", "{who} şunları yazdı (25 Kas 2026 15:04):"),
        ("-----Özgün İleti-----", "-------- İletilen İleti --------", "İleti başlangıcı:"),
    ),
    "cs": MailLanguage(
        ("Od", "Odesláno", "Komu", "Předmět"),
        ("st 25. 11. 2026 v 15:04 odesílatel {who} napsal:",),
        ("-----Původní zpráva-----", "-------- Přeposlaná zpráva --------"),
    ),
    "hu": MailLanguage(
        ("Feladó", "Elküldve", "Címzett", "Tárgy"),
        ("{who} ezt írta (időpont: 2026. nov. 25., Sze, 15:04):",),
        ("-----Eredeti üzenet-----", "Továbbított levél kezdete:"),
    ),
    "ro": MailLanguage(
        ("De la", "Trimis", "Către", "Subiect"),
        ("În mie., 25 nov. 2026 la 15:04, {who} a scris:",),
        ("-----Mesaj original-----", "-------- Mesaj redirecționat --------"),
    ),
    "el": MailLanguage(
        ("Από", "Εστάλη", "Προς", "Θέμα"),
        ("Στις Τετ 25 Νοε 2026 στις 3:04 μ.μ., ο χρήστης {who} έγραψε:",),
        ("-----Αρχικό μήνυμα-----",),
    ),
    "vi": MailLanguage(
        ("Từ", "Đã gửi", "Đến", "Chủ đề"),
        ("Vào Th 4, 25 thg 11, 2026 vào lúc 15:04 {who} đã viết:",),
        ("-----Thư gốc-----",),
    ),
    "he": MailLanguage(
        ("מאת", "נשלח", "אל", "נושא"),
        ("\u202bבתאריך יום ד׳, 25 בנוב׳ 2026 ב-15:04 מאת \u202a{who}\u202c\u200f:\u202c",),
        ("-----הודעה מקורית-----",),
    ),
}
# fmt: on
PEOPLE = ("octocat", "Mona Lisa Octocat", "Jean-Luc O'Neil Jr.", "王小明", "Иван Петров")
ADDRESSES = (
    "",
    " <octocat@example.org>",
    " ***@***.***>",
    " <notifications@github.com>",
    "[mailto:octocat@example.org]",
)
DATES = ("Wednesday, November 25, 2026 3:04 PM", "2026-11-25 15:04", "25.11.2026 15:04:05", "2026年11月25日 15:04")
COLONS = (": ", ":", ":\t", ":\N{NO-BREAK SPACE}", "\N{FULLWIDTH COLON}", "\N{FULLWIDTH COLON} ")
ROWS = ("{label}{colon}{value}", "*{label}{colon}*{value}", "**{label}{colon}** {value}", "| {label} | {value} |")
ORDERS = ((0, 1, 2, 3), (0, 1, 3, 2), (0, 3, 1, 2), (3, 1, 0, 2), (0, 1), (0, 3))
"""Outlook and Foxmail, Gmail, Apple Mail, Thunderbird; and headers of which the rest is cut off."""
COMMAND, TOPIC, CC = "@ci merge", "hexagon: @hubot", "cc @hubot"


@st.composite
def label_blocks(draw: st.DrawFn, words: MailLanguage) -> str:
    """Return lines `From: …`, `Sent: …` as the programs of this language write them."""
    sender = draw(st.sampled_from(PEOPLE)) + draw(st.sampled_from(ADDRESSES))
    values = (sender, draw(st.sampled_from(DATES)), "octocat/compiler", "Re: [octocat/compiler] Make it fast")
    row, colon = draw(st.sampled_from(ROWS)), draw(st.sampled_from(COLONS))
    rows = [
        row.format(label=words.labels[place], colon=colon, value=values[place])
        for place in draw(st.sampled_from(ORDERS))
    ]
    return draw(st.sampled_from(("\n", "\r\n", "\n\n", "  \n"))).join(rows)


@st.composite
def mail_headers(draw: st.DrawFn) -> str:
    """Return the header of a quoted mail in a language, with or without an address."""
    words = LANGUAGES[draw(st.sampled_from(sorted(LANGUAGES)))]
    sentence = draw(st.sampled_from(words.sentences)).format(
        who=draw(st.sampled_from(PEOPLE)) + draw(st.sampled_from(ADDRESSES))
    )
    kind = draw(st.sampled_from(("labels", "sentence", "broken", "title", "ruler")))
    if kind == "sentence":
        return sentence
    if kind == "broken":
        places = [place for place, character in enumerate(sentence) if character == " "]
        place = draw(st.sampled_from(places or [len(sentence)]))
        return f"{sentence[:place]}\n{sentence[place + 1 :]}"
    if kind == "title":
        return draw(st.sampled_from(words.titles))
    block = draw(label_blocks(words))
    return block if kind == "labels" else f"________________________________\n{block}"


@given(
    header=mail_headers(),
    reply=st.sampled_from(("", "Not yet, please.\n\n", "No.\n")),
    space=st.sampled_from(("\n", "\n\n")),
)
def test_nothing_below_the_header_of_an_earlier_mail_is_the_words_of_the_sender(
    header: str, reply: str, space: str
) -> None:
    below = f"{reply}{header}{space}Great!\n\n{COMMAND}\n\n{TOPIC}\n\n{CC}\n"
    assert earlier_mail(below) < inf
    commands = parse(below, registry=REGISTRY, mentions=["@ci"])
    assert [command.reason for command in commands if isinstance(command, BadCommand)] == [texts.IN_EARLIER_MAIL]
    assert len(commands) == 1
    assert listed_topics(below) == {}
    assert parse_ccs(below).users == ()


@pytest.mark.parametrize("words", LANGUAGES.values(), ids=LANGUAGES)
def test_each_form_of_a_header_in_each_language(words: MailLanguage) -> None:
    blocks = ["\n".join(f"{words.labels[place]}: {PEOPLE[0]}" for place in order) for order in ORDERS]
    headers = [*words.titles, *(sentence.format(who=PEOPLE[0]) for sentence in words.sentences), *blocks]
    assert [header for header in headers if earlier_mail(f"No.\n\n{header}\n\n{COMMAND}") != 3] == []


@given(header=mail_headers(), space=st.sampled_from(("\n", "\n\n")))
def test_what_stands_above_the_header_of_an_earlier_mail_counts(header: str, space: str) -> None:
    above = f"{COMMAND}\n{TOPIC}\n{CC}\n{space}{header}{space}Great!"
    [command] = parse(above, registry=REGISTRY, mentions=["@ci"])
    assert not isinstance(command, BadCommand)
    assert set(listed_topics(above)) == {"hexagon", "cc"}
    assert parse_ccs(above).users == ("hubot",)


@pytest.mark.parametrize(
    "header",
    [
        "-------- Original message --------From: octocat Date: 11/25/26 10:00 AM (GMT-08:00) To: hubot",
        "From: octocat Date: 11/25/26 10:00 AM (GMT-08:00) To: hubot Subject: Re: Make it fast",
        "From:\n\noctocat\n\nSent:\n\nWednesday",
        "From: octocat\n and a team with a long name\nSent: Wednesday",
        "Abc: Re: [octocat/compiler] Make it fast (PR #12)",
        "Envoye\N{COMBINING ACUTE ACCENT} : mercredi\nObjet : Re: Make it fast",
        "On Nov 25 octocat wrote:",
        "Wiadomość napisana przez octocat w dniu 25 lis 2026, o godz. 10:00:",
        "25. 11. 2026 v 10:00, octocat:",
        "Среда, 25 ноября 2026, 10:00 +03:00 от octocat:",
        '25.11.2026, 10:00, "octocat":',
        "Am Mittwoch, 25. November 2026 um 10:00, octocat schrieb:",
        "octocat schrieb am 25.11.2026 um 10:00:",
        "No dia 25/11/2026, às 10:00, octocat escreveu:",
        "---- 在 星期三, 2026-11-25 10:00:00 octocat 撰写 ----",
        "---- Le mer., 25 nov. 2026 10:00:00 +0100 octocat a écrit ----",
        "Excerpts from octocat's message of November 25, 2026 10:00 am:",
        "Ar 25 Tach 2026 10:00, ysgrifennodd octocat:",
        "From: octocat\nDate: Wed, Nov 25, 2026 10:00 AM",
        "________________________________\nFrom: octocat",
        "\N{LEFT-TO-RIGHT MARK}From\N{ZERO WIDTH SPACE}: octocat\nDate: today",
    ],
)
def test_unusual_headers_of_an_earlier_mail(header: str) -> None:
    assert earlier_mail(f"No.\n\n{header}\n\n{COMMAND}") == 3


ORDINARY = [
    "On Tuesday somebody wrote:",
    "On 20 Nov 2018 I wrote a test.",
    "@octocat2 wrote:\n> Looks good.",
    "octocat-2026 wrote:",
    "Co-authored-by: Octocat <1+octocat@users.noreply.github.com>\nSigned-off-by: Hubot <hubot@example.org>",
    "Reviewed-by: octocat\nCc: hubot\nFixes: #12",
    "Date: 2026-11-25\nPython: 3.11\nOS: Linux",
    "Model: resnet\nData: imagenet\nTarget: cuda",
    "name: ci\non: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:",
    "commit 1234567\nAuthor: Octocat <octocat@example.org>\nDate:   Wed Nov 25 10:00:00 2026 +0100",
    "2026-11-25T10:00:01Z error: linking failed:",
    "2026-11-25 10:00:01 ERROR tests/test_a.py:",
    "Since 2026-11-25 10:00 this fails:",
    "The nightly run of 2026-11-25 03:12 failed with:",
    "The benchmark on 25 Nov 2026 took 12:30 minutes:",
    "----- Results -----",
    "----- Error message -----",
    "--message--",
    "---",
    "***",
    "__________",
    "=" * 32,
    "Original message:",
    "from: 1.2",
    "Q: Why?\nA: Because.",
    "| Package | From | To |\n| --- | --- | --- |\n| numpy | 1.2 | 1.3 |",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_an_ordinary_comment_is_no_header_of_an_earlier_mail(text: str) -> None:
    assert earlier_mail(f"Hello.\n\n{text}\n\n{COMMAND}") == inf


KEYS = st.sampled_from(
    ["Fixes", "Closes", "Co-authored-by", "Tested-by", "Python", "OS", "Target", "runs-on", "name", "steps", "Version",
     "Branch", "Commit", "Link", "Cc", "Expected", "Actual", "GPU", "Device", "Failure", "Note", "Reason", "Time"]
)  # fmt: skip


@given(st.lists(st.tuples(KEYS, st.sampled_from(["1.2", "octocat", "2026-11-25 10:00", "#12", ""])), max_size=9))
def test_lists_of_keys_and_values_are_no_header_of_an_earlier_mail(pairs: list[tuple[str, str]]) -> None:
    assert earlier_mail("\n".join(f"{key}: {value}" for key, value in pairs)) == inf
