"""Two hundred names that nobody should give anything: what broke pages, terminals and figures."""

_HIT = "window.hit=1"
_PAGES = (
    f"<script>{_HIT}</script>", f"</script><script>{_HIT}</script>", "<!--<script>", "--><script>",
    f"<!--<script>{_HIT}", f"<img src=x onerror={_HIT}>", f'"><img src=x onerror="{_HIT}">',
    f"'><svg onload={_HIT}>", f"<svg/onload={_HIT}>", f"<body onload={_HIT}>", "</style><style>*{",
    f'" onmouseover="{_HIT}', f"' autofocus onfocus='{_HIT}", f"javascript:{_HIT}", "</title><h1>",
    f'<a href="javascript:{_HIT}">x</a>', f"<iframe src='javascript:{_HIT}'>", "<base href=//x.y>",
    "<meta http-equiv=refresh content='0;url=//x.y'>", "<link rel=stylesheet href=//x.y/a.css>",
    f"<details open ontoggle={_HIT}>", f"${{{_HIT}}}", f"`${{{_HIT}}}`", f"';{_HIT};'",
    f'";{_HIT};"',
    f"\\u003cscript\\u003e{_HIT}", "&lt;script&gt;", "&#60;script&#62;", "&amp;", "%3Cscript%3E",
    "]]>", "<![CDATA[", "<?xml?>", "</div></main>", "<template>", "<noscript>", "<plaintext>",
    "<math><mtext></table>", "\u2028window.hit=1", "\u2029", "__proto__", "constructor", "toString",
    "hasOwnProperty", "@TITLE@", "@FACTS@", "%{y}", "<extra>", "<b>bold</b><br>", "NaN", "null",
)  # fmt: skip
_TERMINALS = (
    "\x1b[31mred\x1b[0m", "\x1b[2J\x1b[H", "\x1b]0;owned\x07", "\x1b]8;;http://x.y\x1b\\link",
    "\x1b[6n", "\x9b31m", "\x07", "\x08\x08\x08", "a\rb", "a\nb", "a\tb", "\x00", "\x7f", "\x85",
    "[/red]", "[bold]x", "[link=http://x.y]x[/link]", "[red", "]", "\\[", ":pile_of_poo:", "[/]",
    "[@click=app.quit]x", "\u202egnp.exe", "\u2066x", "\u200b", "\ufeff", "\U000e0041", "\u00ad",
)  # fmt: skip
_FIGURES = (
    r"$\frac$", "$", "$$", r"\$", "$x", r"$\undefined{}$", "_hidden", "__", "a_b^c", r"\n", "{",
    "}",    r"\begin{x}", r"\input{/etc/passwd}", "%", "#", "~", "&", "^", "\\", "\U0001f4a9",
    "漢字", "شكرا",
    "a\u0301" * 30, "\u0e4a" * 60, "\ue000", "\uffff", "|", "a|b", "`x`", "**x**",
    "[x](javascript:1)",    "=1+1", "+1", "-1", "@SUM(1)", "=cmd|' /C calc'!A0", "\t=1",
)  # fmt: skip
_PATHS = (
    "../../../escaped", "/escaped", "..", ".", "-rf", "~", "a/b/c", "a//b", "C:\\x", "con.txt", "*",
    "?x=1", "#frag", "a?b#c%20d", "a%2fb", "file:///etc/passwd", "x" * 300, "é" * 200, " ", "",
)  # fmt: skip
_LONG = tuple(word * count for word in ("a", "<", "[", "$", "\u0301") for count in (5_000, 500_000))

_FIRST = (*_PAGES, *_TERMINALS, *_FIGURES, *_PATHS, *_LONG)
NAMES = tuple(dict.fromkeys((*_FIRST, *(f"dqn{name}" for name in _FIRST))))[:200]
assert len(set(NAMES)) == 200
