"""Find where the quoted e-mail begins in a comment that was sent as an e-mail reply. Pure.

GitHub removes most quoted e-mails from such comments, but not all: text that the mail program neither marks as a
quotation nor puts where GitHub expects it stays, and looks as if the person who replied had written it
(https://github.com/dependabot/feedback/issues/277). GitHub replaces e-mail addresses in it by asterisks.

    Not yet, please.

    Von: octocat                                        two of these lines make a header
    Gesendet: Mittwoch, 25. November 2026 10:00

    Am Mi., 25. Nov. 2026 um 10:00 schrieb octocat:     so does a date with a verb of writing
    -----Original Message-----                          and a title between dashes

Somebody else's command is worse than a command that must be repeated, so a text that could be such a header is one.
docs/decisions/quoted-mail.md has the rules and why no library applies them.
"""

# ruff: noqa: RUF001 (the words of many languages)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from bot.core.patterns import LETTER_OR_DIGIT, Pattern, escape_pattern, normalized

# fmt: off
_LABELS: Mapping[str, str] = {
    "sender": (
        "from/sender/von/absender/de/da/mittente/van/afzender/remetente/remitente/expéditeur/od/nadawca/odesílatel/"
        "odosielateľ/от/от кого/отправитель/від/від кого/відправник/ад/подател/fra/från/avsändare/avsender/afsender/"
        "lähettäjä/feladó/küldő/de la/expeditor/expeditorul/šalje/pošiljatelj/pošiljalac/шаље/saatja/sūtītājs/nuo/"
        "siuntėjas/από/αποστολέας/kimden/gönderen/dari/pengirim/từ/người gửi/จาก/ผู้ส่ง/من/المرسل/از/فرستنده/מאת/"
        "प्रेषक/발신/발신자/발신인/보낸 사람/보낸사람/보내는 사람/发件人/发信人/發件人/寄件者/寄件人/差出人/"
        "送信者/送信元/remitent"
    ),
    "date": (
        "date/sent/sent at/sent on/sent date/send time/date sent/received/datum/gesendet/gesendet am/"
        "empfangen/envoyé/envoyé le/date d'envoi/date d’envoi/reçu/fecha/fecha de envío/enviado/enviada/enviado el/"
        "enviado em/enviada em/enviat/data/data de envio/data invio/data wysłania/inviato/inviato il/verzonden/"
        "verzonden op/verstuurd/ontvangen/wysłano/wysłane/dato/sendt/skickat/skickades/sänt/lähetetty/päivämäärä/"
        "päiväys/odesláno/odeslané/odoslané/dátum/elküldve/küldve/dată/trimis/отправлено/дата/дата отправки/"
        "відправлено/надіслано/изпратено/послато/poslano/poslato/saadetud/kuupäev/nosūtīts/datums/išsiųsta/"
        "ημερομηνία/στάλθηκε/εστάλη/tarih/gönderme tarihi/gönderildi/gönderilen/tanggal/terkirim/dikirim/ngày/"
        "ngày gửi/đã gửi/gửi/วันที่/ส่ง/ส่งเมื่อ/تاريخ/تاريخ الإرسال/التاريخ/تم الإرسال/أرسلت/تاریخ/ارسال شده/תאריך/נשלח/"
        "दिनांक/भेजा गया/날짜/보낸 날짜/보낸날짜/보낸 시간/보낸시간/일시/발신일/전송 날짜/日期/时间/時間/"
        "发送时间/发送日期/发件时间/发件日期/發送時間/接收时间/寄件日期/傳送時間/傳送日期/日時/日付/送信日時/送信日/受信日時"
    ),
    "recipient": (
        "to/recipient/recipients/an/empfänger/à/a/pour/destinataire/destinataires/para/destinatario/destinatari/"
        "destinatarios/destinatário/destinatários/aan/do/komu/adresat/кому/куда/адресат/до/каму/til/till/mottagare/"
        "mottaker/modtager/vastaanottaja/címzett/către/destinatarul/prima/za/primatelj/pre/saaja/kellele/kam/"
        "gavėjas/προς/kime/alıcı/kepada/untuk/penerima/đến/tới/người nhận/ถึง/ผู้รับ/إلى/الى/به/گیرنده/אל/को/수신/"
        "수신자/수신인/받는 사람/받는사람/收件人/收件者/收信人/宛先/受信者/送信先"
    ),
    "subject": (
        "subject/betreff/objet/sujet/asunto/assumpte/oggetto/assunto/onderwerp/temat/тема/тэма/emne/ämne/aihe/tárgy/"
        "subiect/subiectul/předmět/predmet/naslov/zadeva/наслов/относно/teema/temats/tēma/tema/θέμα/konu/perihal/"
        "subjek/chủ đề/tiêu đề/เรื่อง/หัวเรื่อง/الموضوع/موضوع/נושא/विषय/제목/主题/主旨/主題/标题/標題/件名/題名"
    ),
}
"""The labels that mail programs give to the lines of a header, in many languages: Outlook, Gmail, Apple Mail,
Thunderbird, Foxmail, QQ, Zoho, Yahoo and Proton.

`cc` is not here: people write it on GitHub.
"""

_VERBS = (
    "wrote/writes/schrieb/schrieben/geschrieben/écrit/ecrit/escribió/escribio/escrito/escribiu/escreveu/scritto/scrive/"
    "schreef/geschreven/geskryf/napisał/napisała/napisana/pisze/nadesłał/написал/написала/писал/писала/пишет/пише/"
    "написав/написала/напісаў/піша/написа/написао/пише/napsal/napsala/píše/napísal/napísala/napisao/napisala/piše/"
    "napisal/pisal/skrev/skriver/skrifaði/kirjoitti/kirjutas/rakstīja/raksta/rašė/parašė/írta/írt/scris/scrie/yazdı/"
    "yazdi/yazmış/έγραψε/כתב/כתבה/מאת/كتب/كتبت/كتابة/نوشت/نوشته/viết/menulis/escrit/escriure/escrigué/missatge de/"
    "idatzi/sumulat/isinulat/ysgrifennodd/excerpts from"
)
_VERBS_WITHOUT_SPACES = (
    "写道/寫道/写到/寫到/写了/寫了/撰写/撰寫/写信/来信/來信/書きました/書いた/書き込みました/のメール/のメッセージ/"
    "작성/쓴 글/쓴글/썼습니다/님이/보낸 메일/보낸 메시지/เขียน/लिखा/লিখেছেন"
)

_FIRST = (
    "original/ursprüngl/ursprungl/origine/orixinal/oorspronkelijk/oorspronklik/oryginaln/исходн/оригинал/"
    "первоначальн/оригінал/початков/зыходн/özgün/orijinal/alkuperäi/původní/pôvodn/eredeti/oprindelig/opprinnelig/"
    "izvorn/izvirn/αρχικ/מקור/الأصلي/اصلی/asal/asli/gốc/ต้นฉบับ/algne/sākotnēj/pradin/replied/reply/antwort/réponse/"
    "respuesta/risposta/resposta/odpowied/ответ/原始/原邮件/原郵件/原件/元の/원본/원문/回复/回覆/答复/返信/답장"
)
_FORWARDED = (
    "forwarded/weitergeleitet/transféré/transmis/réexpédié/reenviad/reencaminhad/encaminhad/inoltrat/reenviat/"
    "doorgestuur/doorgezonden/przekazan/przekazyw/пересыла/пересла/перенаправ/переадрес/vidarebefordra/videresend/iletil/"
    "yönlendiril/välitet/edelleenlähet/přeposl/přeposíl/preposl/preposiel/továbbít/redirecționat/redirectat/proslijeđ/"
    "prosleđ/проследе/препрат/προωθ/מועבר/הועבר/معاد توجيه/محول/chuyển tiếp/diteruskan/ส่งต่อ/edastat/persiųst/pārsūt/"
    "转发/轉寄/转寄/轉發/転送/전달"
)
_MAILS = (
    "message/mail/nachricht/bericht/boodskap/mensaje/messaggio/mensagem/missatge/mensaxe/wiadomo/сообщени/письм/"
    "повідомлен/лист/ліст/писмо/порук/meddelande/meddelelse/mejl/melding/besked/mesaj/ileti/e-posta/viesti/zpráv/správ/üzenet/"
    "levél/poruk/sporočil/μήνυμα/μηνύμ/הודעה/رسالة/پیام/thư/tin nhắn/pesan/ข้อความ/kiri/sõnum/laišk/vēstul/ziņoj/邮件/"
    "郵件/信件/メッセージ/メール/메시지/메일"
)
# fmt: on


def _words(*lists: str) -> str:
    """Return a pattern of any of these words; a space stands for any spaces."""
    words = sorted({word for words in lists for word in words.split("/")}, key=len, reverse=True)
    return "(?:" + "|".join(escape_pattern(word).replace("\\ ", " ?") for word in words) + ")"


_INVISIBLE = Pattern("[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]+")
_SPACES = Pattern(r"&nbsp;|[\t\x{a0}\x{1680}\x{2000}-\x{200a}\x{202f}\x{205f}\x{3000}]")
_LINE_END = Pattern(r"\r\n|\r|\n")
_MARKS = rf"[^{LETTER_OR_DIGIT}@\n]*"
"""Characters before the first word: marks of quotations, lists, tables, bold text."""

_LABEL = "|".join(f"(?P<{role}>{_words(words)})" for role, words in _LABELS.items())
_LABELED = Pattern(rf"^{_MARKS}(?:{_LABEL})[ *_]*[:：︰|]", ignore_case=True)
_LABELED_LATER = Pattern(rf"[ *](?:{_LABEL})[ *_]*[:：]", ignore_case=True)
_LEAST_LABELS = 2
_MOST_BETWEEN = 1
"""Other lines between two lines of a header: the rest of a long line, or a value below its label."""

_DASHES = "[-=_\N{EN DASH}\N{EM DASH}\N{BOX DRAWINGS LIGHT HORIZONTAL}]{2,}"
_FIRST_MAIL, _FORWARDED_MAIL = (
    f"(?:{stems}.{{0,40}}{_words(_MAILS)}|{_words(_MAILS)}.{{0,40}}{stems}|原邮件|原郵件)"
    for stems in (_words(_FIRST, _FORWARDED), _words(_FORWARDED))
)
_TITLE = Pattern(
    rf"^{_MARKS}{_DASHES}.{{0,10}}{_FIRST_MAIL}.{{0,10}}{_DASHES}"
    rf"|^.{{0,30}}{_FORWARDED_MAIL}.{{0,20}}[:：]$|^{_MARKS}ileti başlangıcı ?[:：]$"
    r"|^[ >]*_{32}$"
    r"|notifications@github\.com|@(?:no)?reply\.github\.com|\*{3}@\*{3}\.\*{3}"
    r"|[:：].*\[[^\[\] /\n]+/[^\[\] /\n]+\] .*\((?:PR|Issue|Discussion) #[0-9]+\)$",
    ignore_case=True,
    by_line=True,
)
"""A title, the ruler of Outlook, and the addresses and subjects of GitHub's mails."""

_DIGIT = Pattern(r"\p{Nd}")
_NO_WORD = r"(?:^|[^0-9A-Za-z@#/_.:-])"
_TIME = rf"{_NO_WORD}\p{{Nd}}{{1,2}} ?[:h时時点點시] ?\p{{Nd}}{{2}}"
_YEAR = rf"{_NO_WORD}(?:19|20|25)[0-9]{{2}}(?:[^0-9A-Za-z_]|$)"
_DATE = Pattern(rf"{_TIME}|{_YEAR}|{_NO_WORD}\p{{Nd}}{{1,4}}[./-] ?\p{{Nd}}{{1,2}}[./-] ?\p{{Nd}}{{2,4}}")
_ONE_VERB = rf"(?:(?:^|[^\p{{L}}]){_words(_VERBS)}(?:[^\p{{L}}]|$)|{_words(_VERBS_WITHOUT_SPACES)})"
_WROTE = Pattern(_ONE_VERB, ignore_case=True)
_END = Pattern(rf"(?:[:：︰]|-{{2,}}|{_ONE_VERB})[^{LETTER_OR_DIGIT}]*$", ignore_case=True)
_ON_A_DAY = Pattern(
    rf"^{_MARKS}(?:on|at|am|le|el|il|em|op|den|w dniu|dnia|dne|dňa|în|на|στις|vào|pada) .*\p{{Nd}}.*{_ONE_VERB}",
    ignore_case=True,
)
_DATE_AND_NAME = Pattern(
    rf"^{_MARKS}(?:\p{{L}}+[.,]{{1,2}} ?)?[0-9]{{1,4}}[^0-9A-Za-z:].*"
    r"[^0-9:][0-9]{1,2}:[0-9]{2}[^0-9:].*\p{L}.*[:：]$"
)
"""`2026年11月25日(水) 10:00 octocat:` and `ср, 25 нояб. 2026 г. в 10:00, octocat:` have no verb."""
_MOST_LINES = 3
"""The lines over which mail programs break a date with a verb of writing."""


def typed_lines(text: str) -> list[str]:
    """Return the lines of a text as they were typed."""
    return _LINE_END.split(text)


def earlier_mail(text: str) -> float:
    """Return the number of the line, from 1, at which the header of an earlier e-mail begins; infinite without one."""
    # A Turkish İ is no capital i for a pattern.
    plain = _INVISIBLE.sub("", normalized("NFC", text).replace("İ", "i"))
    lines = [line.rstrip() for line in typed_lines(_SPACES.sub(" ", plain))]
    return min(_first_title(lines), _first_labels(lines), _first_attribution(lines))


def _first_title(lines: Sequence[str]) -> float:
    """Return the first line that is a header alone: `-----Original Message-----`, an address of GitHub."""
    text = "\n".join(lines)
    title = _TITLE.search(text)
    return text.count("\n", 0, title.start()) + 1 if title else inf


def _first_labels(lines: Sequence[str]) -> float:
    """Return the first of the lines `From: …`, `Date: …`: two or more in a row with different labels."""
    labels: set[str] = set()
    first, other_lines = inf, 0
    for number, line in enumerate(lines, start=1):
        if label := _LABELED.match(line):
            if not labels:
                first = number
            labels |= {
                role for label_match in (label, *_LABELED_LATER.finditer(line)) for role in _LABELS if label_match[role]
            }
            other_lines = 0
            if len(labels) >= _LEAST_LABELS:
                return first
        elif line:
            other_lines += 1
            if other_lines > _MOST_BETWEEN:
                labels = set()
    return inf


def _first_attribution(lines: Sequence[str]) -> float:
    """Return the first line of the first `On 25 Nov 2026 at 10:00, octocat wrote:`, which may be broken over lines."""
    for end, line in enumerate(lines, start=1):
        if _END.search(line):
            for start in range(end - 1, max(0, end - _MOST_LINES) - 1, -1):
                if not lines[start]:
                    break
                if _is_attribution(" ".join(lines[start:end])):
                    return start + 1
    return inf


def _is_attribution(sentence: str) -> bool:
    # Most lines that end with a colon have no digit, and this test takes the least time.
    return _DIGIT.search(sentence) is not None and bool(
        (_WROTE.search(sentence) and _DATE.search(sentence))
        or _DATE_AND_NAME.match(sentence)
        or _ON_A_DAY.match(sentence)
    )
