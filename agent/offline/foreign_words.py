"""Common questions in Spanish, German, French, Portuguese, Italian and Chinese, word by word as English.

Names and numbers stay.
"""

from __future__ import annotations

import re

from agent.offline.page import compiled

_STRONG = {
    "de": r"\b(?:passt|gib mir|zeig\w*|kostet|kosten|wie ?viele?n?|wie lange|wie schnell|welche[rsn]?|trainieren|"
    r"feinabstimm\w+|"
    r"schreib\w*|"
    r"vergleich\w*|brauche[n]?|gr[öo](?:ß|ss)te[rsn]?|reicht|warum|statt(?:dessen)?|milliarden?|vollem|gleichzeitig\w*|"
    r"günstigst\w+|billigst\w+|nutzer|k[öo]nnen wir|kann ich|erstell\w*|erzeug\w*|rückgängig|speicher|knoten|"
    r"erkl[äa]r\w*)\b",
    "es": r"[¿¡]|\b(?:cu[áa]nt[oa]s?|cu[áa]l(?:es)?|cabe[n]?|cuesta|entrenar|afinar|tarda\w*|millones|mil millones|"
    r"necesito|"
    r"puedo|genera(?:r|me)?|compara(?:r|me)?|m[áa]s barat[oa]|usuarios|por qu[ée]|ajuste fino|cambia|escribe|deshacer|"
    r"ahora con|qu[ée] gpus?|explica\w*)\b",
    "fr": r"\b(?:combien|est-ce(?: que| qu')?|tient|tiennent|co[ûu]te\w*|entra[îi]ner|pr[ée]-?entra[îi]n\w*|milliards?|"
    r"g[ée]n[èe]re\w*|[ée]cris|compare[rz]|quel(?:le)?s?|puis-je|peut-on|utilisateurs|pourquoi|moins ch[eè]re?s?|"
    r"maintenant|"
    r"annule|explique\w*|plut[ôo]t|faut-il)\b",
    "pt": r"\b(?:quant[oa]s?|preciso|treinar|cabe[m]?|custa|placas?|usu[áa]rios|milh(?:ões|oes|ão)|bilh\w+|posso|"
    r"voc[êe])\b",
    "it": r"\b(?:quant[ie]|quanto|addestr\w+|schede?|utenti|miliardi|milioni|posso|costa|al secondo|noleggiare|"
    r"ci sta)\b",
}  # fmt: skip
# Two of these make it that language: short follow-ups have nothing else.
_WEAK = {
    "de": r"\b(?:und|mit|auf|bei|oder|das|die|der|ein(?:e[rmns]?)?|ist|für|jetzt|ohne|nur|was|wenn|dann|halb\w*)\b",
    "es": r"(?:^|\b)(?:y|con|en|una?|los|las|el|para|de|sin|ahora|si|por|solo|mejor)\b",
    "fr": r"\b(?:et|avec|sur|en|une?|les?|la|des?|du|pour|sans|si|ou|au|aux|mon|fichier)\b",
    "pt": r"\b(?:com|em|um[a]?|para|sem|n[oa]s?|d[oa]s?|e)\b",
    "it": r"\b(?:con|su|una?|di|per|il|lo|gli|dei|della|fa|e)\b",
}  # fmt: skip
_ENGLISH = r"\b(?:the|what|how|does|is|with|and|for|can|will|my|we|i|on|of|it|that|this|if|to|which)\b"

# In order; longer phrases first. Applied to the text of that language only.
_PHRASES: dict[str, tuple[tuple[str, str], ...]] = {
    "de": (
        (r"\beine[rnms]? einz(?:ige|elne)[rnms]?\b|\bnur eine[rnms]?\b", "a single"),
        (r"\bdoppelt so viele?n?(?: gpus| karten)?\b", "double the gpus"),
        (r"\bdie h[äa]lfte(?: der)?(?: gpus| karten)?\b", "half the gpus"),
        (r"\bhalb so viele?n?(?: gpus| karten)?\b", "half the gpus"),
        (r"\bverdopp\w+(?: (?:die )?(?:anzahl (?:der )?)?(?:gpus|karten))?\b", "double the gpus"),
        (r"\bwie ?viele[nr]?\b", "how many"), (r"\bwie ?viel\b", "how much"),
        (r"\bwie lang darf\b|\bwie lang kann\b", "how long can"), (r"\bwie lange\b", "how long"),
        (r"\bwie schnell\b", "how fast"),
        (r"\bwie gro(?:ß|ss)\b", "how large"), (r"\bwas kostet\b", "what does it cost"),
        (r"\bkostet\b|\bkosten\b", "cost"), (r"\bpasst\b|\bpassen\b|\breicht\b", "fits"),
        (r"\bkann (?:ich|man)\b|\bk[öo]nnen wir\b", "can i"),
        (r"\bbrauche (?:ich|wir)\b|\bbrauchen wir\b", "do i need"), (r"\bmindestens\b", "at least"),
        (r"\bvoll\w* (?:fine-?tuning|feinabstimmung|finetuning)\b", "full fine-tuning"),
        (r"\bvoll(?:st[äa]ndig\w*|e[nms]?)? (?:zu )?(?:fine-?tun\w+|fein(?:zu)?tun\w+|feinabstimm\w+)\b",
         "full fine-tuning"),
        (r"\bfein(?:zu)?tun\w+\b|\bzu finetunen\b", "fine-tune"), (r"\bparallelisier\w+\b", "parallelism"),
        (r"\bempfiehl\w*\b|\bempf[eo]hl\w+\b", "recommend"), (r"\bbericht\b", "report"), (r"\bdauert\b", "take"),
        (r"\blatenz\w*\b", "latency"), (r"\bdurchsatz\w*\b", "throughput"), (r"\bbest(?:e[rsnm]?)\b", "best"),
        (r"\bg[üu]nstiger\b|\bbilliger\b", "cheaper"), (r"\bbesser\b", "better"), (r"\bh[öo]chstens\b", "at most"),
        (r"\bherein\b|\brein\b|\beingabe\b", "in"), (r"\bheraus\b|\braus\b|\bausgabe\b", "out"),
        (r"\bfeinabstimm\w+\b", "fine-tuning"), (r"\bvortrain\w+\b", "pretraining"), (r"\btrainier\w+\b", "train"),
        (r"\binferenz\w*\b", "inference"), (r"\b(?:bereitstell|betreib)\w*\b", "serve"),
        (r"\bgr[öo](?:ß|ss)te[rsn]?\b", "largest"), (r"\bl[äa]ngste[rsn]?\b", "longest"),
        (r"\bmaximale?[rsn]?\b", "maximum"), (r"\bkontext(?:l[äa]nge|fenster)?\b", "context"),
        (r"\bsequenzl[äa]nge\b", "sequence length"), (r"\bsequenzen\b", "sequences"), (r"\bsequenz\b", "sequence"),
        (r"\bbatchgr[öo](?:ß|ss)e\b", "batch size"), (r"\bspeicher\b", "memory"),
        (r"\bg[üu]nstigste[rsn]?\b|\bbilligste[rsn]?\b", "cheapest"), (r"\bmieten\b", "rent"), (r"\bkaufen\b", "buy"),
        (r"\banfragen\b", "requests"), (r"\bpro sekunde\b", "per second"), (r"\bpro\b", "per"),
        (r"\bbetrieb\b", "operation"), (r"\bleuten?\b|\bpersonen\b", "people"), (r"\binnerhalb\b", "within"),
        (r"\b(?:im|pro) monat\b", "per month"), (r"\bsekunden?\b", "second"), (r"\bantwort(?:en)?\b", "answer"),
        (r"\banfangen\b|\bbeginnen\b", "start"), (r"\bsoll(?:en|te|ten)?\b", "should"),
        (r"\bnutzern?\b", "users"), (r"\bgleichzeitig\w*\b", "concurrent"), (r"\bvergleiche?\b", "compare"),
        (r"\bwarum\b", "why"), (r"\bwelche[rsn]?\b", "which"), (r"\bschneller\b", "faster"),
        (r"\berkl[äa]r\w*\b", "explain"), (r"\bwoher kommen?\b", "where does come from"),
        (r"\b(?:schreib|erstell|erzeug|generier)\w*(?: mir)?\b", "write"), (r"\bdateien\b", "files"),
        (r"\bdatei\b", "file"), (r"[- ]?konfig\w*\b", " config"), (r"\bgib mir\b", "give me"), (r"\bals\b", "as"),
        (r"\bspeicher\w*\b", "save"),
        (r"\br[üu]ckg[äa]ngig(?: machen)?\b", "undo"), (r"\bjetzt\b", "now"), (r"\b(?:an)?statt(?= \w)", "instead of"),
        (r"\bstatt(?:dessen)?\b", "instead"),
        (r"\bohne\b", "without"), (r"\bmit\b", "with"), (r"\bauf\b", "on"), (r"\bund\b", "and"), (r"\boder\b", "or"),
        (r"\bf[üu]r\b", "for"), (r"\bbei\b", "with"), (r"\bvon\b", "of"), (r"\bnur\b", "only"),
        (r"\bkarten\b", "gpus"), (r"\bkarte\b", "gpu"), (r"\bknoten\b", "nodes"), (r"\bstunden?\b", "hours"),
        (r"\btagen?\b", "days"), (r"\bwochen?\b", "weeks"), (r"\beine?[rmns]?\b", "a"), (r"\bzwei\b", "2"),
        (r"\bdrei\b", "3"), (r"\bvier\b", "4"), (r"\bacht\b", "8"), (r"\bsechzehn\b", "16"),
        (r"\bbillion(?:en)?\b", "trillion"),
        (r"\bmilliarden?\b|\bmrd\.?(?=\W)", "billion"), (r"\bmillionen?\b|\bmio\.?(?=\W)", "million"),
        (r"\btokens?\b", "tokens"), (r"\bdamit\b", "with it"), (r"\bdas\b", "that"),
        (r"\bdes\b|\bder\b|\bdie\b|\bden\b|\bdem\b", "the"), (r"\bist\b", "is"), (r"\bwas\b", "what"),
        (r"\bwenn\b", "if"),
    ),
    "es": (
        (r"\buna? (?:sol[ao]|[úu]nic[oa])\b|\bsolo una?\b", "a single"),
        (r"\bel doble(?: de (?:gpus?|tarjetas))?\b", "double the gpus"),
        (r"\bla mitad(?: de (?:las )?(?:gpus?|tarjetas))?\b", "half the gpus"),
        (r"\bdobl\w+ (?:el n[úu]mero|la cantidad) de (?:gpus?|tarjetas)\b", "double the gpus"),
        (r"\bcu[áa]nt[oa]s\b", "how many"), (r"\bdesde cero\b", "from scratch"), (r"\by si\b", "what if"),
        (r"\bqu[ée] configuraci[óo]n (?:me )?(?=recomiend|aconsej)", "what setup do you "),
        (r"\baconsej\w+\b", "recommend"), (r"\b(?:de|en la) entrada\b", "in"), (r"\b(?:de|en la) salida\b", "out"),
        (r"\ba la vez\b|\bal mismo tiempo\b", "at once"), (r"\bpor mill[óo]n de\b", "per million"),
        (r"\blatencia\b", "latency"), (r"\brendimiento\b", "throughput"), (r"\bvelocidad\b", "speed"),
        (r"\bparalel\w+\b", "parallelism"), (r"\bmejor(?:es)?\b", "best"), (r"\bcuanti[zc]\w+\b", "quantize"),
        (r"\binforme\b", "report"), (r"\bguarda\w*\b", "save"), (r"\bcomo\b", "as"), (r"\bmenos de\b", "less than"),
        (r"\bcu[áa]nto (?:tiempo )?(?:tarda\w*|dura|se tarda)\b|\bcu[áa]nto tiempo\b", "how long"),
        (r"\bcu[áa]nto (?:me )?(?:cuesta\w*|costar[íi]a|cost[oó])\b", "how much does it cost"),
        (r"\bcu[áa]nt[oa]s?\b", "how much"),
        (r"\b(?:me )?cuesta\b|\bcostar[íi]a\b|\bcoste\b|\bcosto\b|\bprecio\b", "cost"),
        (r"\bcaben?\b|\bcabr[íi]a\b", "fits"), (r"\bpuedo\b|\bpodemos\b|\bse puede\b", "can i"),
        (r"\bnecesito\b|\bnecesitamos\b|\bhacen falta\b", "do i need"),
        (r"\bcomo m[íi]nimo\b|\bal menos\b", "at least"),
        (r"\b(?:ajuste fino|fine-?tuning|afinado) completo\b", "full fine-tuning"),
        (r"\bajuste fino\b|\bafinar\b|\bajustar\b", "fine-tune"), (r"\bpre-?entren\w+\b", "pretrain"),
        (r"\bentren\w+\b", "train"), (r"\bm[áa]s barat[oa]s?\b", "cheapest"), (r"\balquilar\b", "rent"),
        (r"\bcomprar\b", "buy"), (r"\bm[áa]s r[áa]pid[oa]\b", "faster"), (r"\bm[áa]s largo\b", "longest"),
        (r"\bm[áa]s grande\b", "largest"), (r"\bm[áa]xim[oa]\b", "maximum"), (r"\bcontexto\b", "context"),
        (r"\bcomplet[oa]\b", "full"), (r"\blotes?\b", "batch"), (r"\bm[íi]nim[oa]\b", "minimum"),
        (r"\bsecuencias? de\b", "sequences of"),
        (r"\bsecuencias?\b", "sequence"), (r"\bmemoria\b", "memory"),
        (r"\bpor qu[ée]\b", "why"), (r"\bqu[ée]\b", "what"), (r"\bcu[áa]l(?:es)?\b", "which"),
        (r"\bcompara(?:r|me)?\b", "compare"), (r"\bexplica(?:r|me)?\b", "explain"),
        (r"\b(?:genera|escribe|crea|dame)(?:r|me)?\b", "write"), (r"\barchivos?\b|\bficheros?\b", "files"),
        (r"\bconfiguraci[óo]n\b", "config"), (r"\bdeshacer\b|\bdeshaz\b", "undo"), (r"\bahora\b", "now"),
        (r"\ben lugar de\b", "instead of"), (r"\busuarios\b", "users"), (r"\bsimult[áa]ne\w+\b", "concurrent"),
        (r"\bpeticiones\b|\bsolicitudes\b", "requests"), (r"\bpor segundo\b", "per second"),
        (r"\btarjetas?\b", "gpus"), (r"\bnodos?\b", "nodes"), (r"\bhoras?\b", "hours"), (r"\bd[íi]as?\b", "days"),
        (r"\bmil millones\b", "billion"), (r"\bmillones\b|\bmill[óo]n\b", "million"), (r"\bbillones\b", "trillion"),
        (r"(?<=million )de tokens?\b|(?<=billion )de tokens?\b|(?<=\dM )de tokens?\b|"
         r"(?<=\dB )de tokens?\b", "tokens"),
        (r"\bde tokens\b", "tokens"), (r"\bsin\b", "without"), (r"\bcon\b", "with"), (r"\ben\b", "on"),
        (r"\bpara\b", "for"), (r"\by\b", "and"), (r"\bo\b", "or"), (r"\bsolo\b|\bs[óo]lo\b", "only"),
        (r"\bunas?\b|\buno?\b", "a"), (r"\bdos\b", "2"), (r"\btres\b", "3"), (r"\bcuatro\b", "4"), (r"\bocho\b", "8"),
        (r"\bdel?\b", "of"), (r"\b(?:el|la|los|las)\b", "the"), (r"\bservir\b", "serve"), (r"\bmodelo\b", "model"),
        (r"\bpresupuestos?\b", "budget"), (r"\bd[óo]lares\b", "dollars"), (r"\brecom[ie]+nd\w+\b", "recommend"),
        (r"\binferencias?\b", "inference"), (r"\bdespl(?:egar|iegue)\b", "deploy"),
        (r"\bsi\b", "if"), (r"[¿¡]", " "),
    ),
    "fr": (
        (r"\bune? seule?\b|\bune? unique\b", "a single"),
        (r"\bdoubl\w+ le nombre de (?:gpus?|cartes)\b", "double the gpus"),
        (r"\bd'o[ùu] vien(?:t|nent) (?:la |le |les )?([^?.!]+?)(?= pour| sur| avec|\s*[?.!]|$)",
         r"where does the \1 come from"),
        (r"\bmoins de\b", "less than"), (r"\ben m[êe]me temps\b", "at once"), (r"\bpar\b", "per"),
        (r"\ben entr[ée]e\b", "in"), (r"\ben sortie\b", "out"), (r"\blatence\b", "latency"),
        (r"\bd[ée]bit\b", "throughput"), (r"\bparall[ée]l\w+\b", "parallelism"), (r"\bmeilleure?s?\b", "best"),
        (r"\bconseill\w+\b", "recommend"), (r"\brapport\b", "report"), (r"\benregistre\w*\b", "save"),
        (r"\bcomme\b", "as"), (r"\boptimiseurs?\b", "optimizer"), (r"\bbits\b", "bit"),
        (r"\blongueur de s[ée]quence\b", "sequence length"),
        (r"\ble double(?: de (?:gpus?|cartes))?\b|\bdeux fois plus(?: de gpus?)?\b", "double the gpus"),
        (r"\bla moiti[ée](?: des (?:gpus?|cartes))?\b", "half the gpus"), (r"\bcombien de temps\b", "how long"),
        (r"\bcombien (?:[çc]a |cela )?co[ûu]te\w*\b", "how much does it cost"),
        (r"\bcombien de\b(?= (?:gpus?|h\d|a\d|b\d|cartes|utilisateurs|n[oœ]e?uds|tokens|jetons|requ))", "how many"),
        (r"\bcombien de (?=\w*\d)", "how many "),
        (r"\bcombien d['e]\s?(?=utilisateurs|requ[êe]tes|clients)", "how many "), (r"\bcombien\b", "how much"),
        (r"\bco[ûu]te\w*\b|\bprix\b|\bco[ûu]ts?\b", "cost"),
        (r"\best-ce qu(?:e|')\s?", "does "), (r"\b(?:tient|tiennent|rentre|passe)\b", "fits"),
        (r"\bpuis-je\b|\bpeut-on\b|\bje peux\b", "can i"),
        (r"\bme faut-il\b|\bfaut-il\b|\bil (?:me )?faut\b", "do i need"),
        (r"\bau moins\b|\bau minimum\b", "at least"),
        (r"\b(?:fine-?tuning|affinage|ajustement) complet\b", "full fine-tuning"),
        (r"\baffiner\b|\bfine-?tuner\b", "fine-tune"), (r"\bpr[ée]-?entra[îi]n\w+", "pretrain"),
        (r"\bentra[îi]n\w+", "train"), (r"\b(?:la |le |les )?moins ch[eè]re?s?\b", "cheapest"),
        (r"\blouer\b", "rent"), (r"\bacheter\b", "buy"), (r"\bplus (?:vite|rapide)\b", "faster"),
        (r"\bplus long(?:ue)?\b", "longest"), (r"\bplus grand(?:e)?\b|\bplus gros(?:se)?\b", "largest"),
        (r"\bmaxim(?:um|ale?)\b", "maximum"), (r"\bcontexte\b", "context"), (r"\bs[ée]quences?\b", "sequences"),
        (r"\btaille de (?:lot|batch)\b|\blots?\b", "batch size"), (r"\bm[ée]moire\b", "memory"),
        (r"\bpourquoi\b", "why"), (r"\bcompare[rz]?\b", "compare"),
        (r"\bquel(?:le)?s?\b", "which"),
        (r"\bg[ée]n[èe]re(?:[rz]|-moi)?\b|\b[ée]cris(?:-moi)?\b|\bdonne-moi\b", "write"), (r"\bfichiers?\b", "files"),
        (r"\bexplique\w*(?:-moi)?\b", "explain"), (r"\bannule\w*\b", "undo"), (r"\bmaintenant\b", "now"),
        (r"\bplut[ôo]t\b", "instead"), (r"\bau lieu d[e']\b", "instead of"), (r"\butilisateurs\b", "users"),
        (r"\bsimultan[ée]\w*\b", "concurrent"), (r"\brequ[êe]tes\b", "requests"), (r"\bper seconde\b", "per second"),
        (r"\bcartes?\b", "gpus"), (r"\bn[oœ]e?uds?\b", "nodes"), (r"\bheures?\b", "hours"), (r"\bjours?\b", "days"),
        (r"\bmilliards?(?: de)?\b", "billion"), (r"\bmillions?(?: de)?(?= (?:de )?tok)", "million"),
        (r"(?<=\d)\s?go\b", "GB"), (r"\bde tokens\b|\bjetons\b", "tokens"), (r"\bsans\b", "without"),
        (r"\bavec\b", "with"), (r"\bsur\b", "on"), (r"\ben\b", "in"), (r"\bpour\b", "for"), (r"\bet\b", "and"),
        (r"\bou\b", "or"), (r"\bune?\b", "a"), (r"\bdeux\b", "2"), (r"\btrois\b", "3"), (r"\bquatre\b", "4"),
        (r"\bhuit\b", "8"), (r"\b(?:du|des|de)\b", "of"), (r"\b(?:le|la|les)\b", "the"),
        (r"\bdollars?\b", "dollars"), (r"\brecommand\w*\b", "recommend"),
        (r"\binf[ée]rences?\b", "inference"), (r"\bd[ée]ploy(?:er|ez|é)\b", "deploy"),
        (r"\bservir\b", "serve"), (r"\bmod[èe]le\b", "model"), (r"\bsi\b", "if"),
        (r"\bl'(?=\w)", "the "), (r"\bd'(?=\w)", "of "),
    ),
    "pt": (
        (r"\bd[eoa]s?\b", "of"), (r"\bquant[oa]s\b", "how many"), (r"\bquanto tempo\b", "how long"),
        (r"\bquanto custa\w*\b", "how much does it cost"),
        (r"\b(?:preciso|precisamos)\b", "do i need"), (r"\b(?:posso|podemos|d[áa] para)\b", "can i"),
        (r"\bcabem?\b", "fits"), (r"\bpr[ée]-?trein\w+\b", "pretrain"), (r"\btrein\w+\b", "train"),
        (r"\bajuste fino completo\b|\bfine-?tuning completo\b", "full fine-tuning"),
        (r"\bajuste fino\b", "fine-tuning"),
        (r"\bmais barat[oa]s?\b", "cheapest"), (r"\balugar\b", "rent"), (r"\busu[áa]rios\b", "users"),
        (r"\bplacas?\b", "gpus"), (r"\bmem[óo]ria\b", "memory"), (r"\bcontexto\b", "context"), (r"\bdias\b", "days"),
        (r"\bhoras\b", "hours"), (r"\bbilh(?:ões|oes|ão)(?: de)?\b", "billion"),
        (r"\bmilh(?:ões|oes|ão)(?: de)?\b", "million"), (r"\bpor segundo\b", "per second"), (r"\bservir\b", "serve"),
        (r"\bcom\b", "with"), (r"\bsem\b", "without"), (r"\bem\b|\bn[oa]s?\b", "in"), (r"\bpara\b", "for"),
        (r"\be\b", "and"), (r"\bum[a]?\b", "a"), (r"\b(?:o|a|os|as)\b(?= [A-Z])", "the"),
    ),
    "it": (
        (r"\bper\b", "for"), (r"\bquant[ie]\b", "how many"), (r"\bquanto (?:tempo|dura|ci vuole)\b", "how long"),
        (r"\bquanto costa\w*\b", "how much does it cost"), (r"\b(?:mi serv\w+|ho bisogno di)\b", "do i need"),
        (r"\b(?:posso|possiamo|si pu[òo])\b", "can i"), (r"\bci sta(?:nno)?\b|\bentra(?:no)?\b", "fits"),
        (r"\bpre-?addestr\w+\b", "pretrain"), (r"\baddestr\w+\b|\ballen\w+\b", "train"),
        (r"\bfine-?tuning completo\b", "full fine-tuning"), (r"\bpi[ùu] economic\w+\b", "cheapest"),
        (r"\bnoleggiare\b|\baffittare\b", "rent"), (r"\butenti\b", "users"), (r"\bschede?\b", "gpus"),
        (r"\bmemoria\b", "memory"), (r"\bcontesto\b", "context"), (r"\bgiorni\b", "days"), (r"\bore\b", "hours"),
        (r"\bmiliardi?(?: di)?\b", "billion"), (r"\bmilion[ei](?: di)?\b", "million"), (r"\btoken\b", "tokens"),
        (r"\bal secondo\b", "per second"), (r"\bservire\b", "serve"), (r"\bcon\b", "with"), (r"\bsenza\b", "without"),
        (r"\bsu\b", "on"), (r"\be\b", "and"), (r"\bun[oa]?\b", "a"), (r"\bdi\b", "of"),
    ),
}  # fmt: skip
_COMMA = re.compile(r"(?<![\d,.])(\d+),(\d{1,2})(?!\d|,)")
_CHINESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
# Millions of 百万 and 千万, billions of 十亿, 百亿 and 千亿.
_HUNDREDS = {"百": 1, "千": 10}
_BILLIONS = {"十": 1, "百": 10, "千": 100}
# '输入2000 token，输出500 token'
_IN_AND_OUT = re.compile(r"(?:平均|每次)?(输入|输出)(?:长度)?(?:约|为|是)?\s*(\d+k?)(?:\s*个?\s*tokens?)?")
_PUNCTUATION = str.maketrans(
    {"，": ", ", "？": "? ", "。": ". ", "、": ", ", "：": ": ", "；": "; ", "（": " (", "）": ") "}
)
_CHINESE_PHRASES: tuple[tuple[str, str], ...] = (
    # Japanese; what it shares with Chinese is below.
    ("フルファインチューニング", "full fine-tuning"), ("ファインチューニング", "fine-tuning"),
    ("できますか", "can i"), ("入りますか", "does it fit"),
    ("収まりますか", "does it fit"), ("載りますか", "does it fit"),
    ("事前学習", "pretrain"), ("学習", "train"), ("何時間", "how many hours"), ("何日", "how many days"),
    ("いくら", "how much does it cost"), ("コスト", "cost"), ("推論", "inference"), ("メモリ", "memory"),
    ("コンテキスト", "context"), ("トークン", "tokens"), ("どのくらい", "how long"),
    ("几天", "how many days"), ("几小时", "how many hours"),
    ("继续预训练", "continued pretraining"), ("预训练", "pretrain"), ("全参数微调", "full fine-tuning"),
    ("全量微调", "full fine-tuning"), ("全参微调", "full fine-tuning"), ("微调", "fine-tune"), ("训练", "train"),
    ("推理", "inference"), ("部署", "deploy"), ("序列长度", "sequence length"), ("上下文长度", "context length"),
    ("上下文", "context"), ("最长", "longest"), ("最大", "largest"), ("批大小", "batch size"), ("显存", "memory"),
    ("内存", "memory"), ("够不够", "does it fit"),
    ("多少并发", "how many concurrent users"), ("多少用户", "how many users"), ("最多", "at most "),
    ("够吗", "enough"), ("够", "enough"), ("请求", "requests"), ("每秒", "per second "), ("首字", "ttft"),
    ("单张", "1x "), ("多机", "nodes"), ("单机", "one node"), ("放得下", "fit"), ("放下", "fit"), ("装得下", "fit"),
    ("能跑", "does it fit"), ("够用", "fit"), ("多少钱", "how much does it cost"), ("费用", "cost"),
    ("成本", "cost"), ("价格", "price"), ("要多久", "how long"), ("多长时间", "how long"), ("需要多久", "how long"),
    ("多久", "how long"), ("多快", "how fast"), ("吞吐", "throughput"), ("延迟", "latency"), ("并发", "concurrent"),
    ("长度", " seq_len "), ("全参数", " full fine-tuning "), ("个人", " people"), ("人同时", " people at once"),
    ("用户", "users"), ("最便宜", "cheapest"), ("哪种", "which"), ("哪个", "which"), ("什么", "what"),
    ("租", "rent"), ("需要多少", "how many"), ("多少张", "how many gpus "), ("多少", "how many"),
    ("几张", "how many gpus "), ("至少", "at least"), ("对比", "compare"), ("比较", "compare"), ("还是", "or"),
    ("为什么", "why"), ("解释", "explain"), ("配置文件", "config files"), ("配置", "config"), ("生成", "write"),
    ("写", "write"), ("脚本", "script"), ("文件", "files"), ("换成", "now with"), ("改成", "now with"),
    ("改为", "now with"), ("如果用", "what if"), ("如果", "if"), ("翻倍", "double the gpus"),
    ("一半", "half the gpus"), ("撤销", "undo"), ("更快", "faster"), ("加速", "speed up"), ("并行", "parallelism"),
    ("性价比最高", "cheapest"), ("更划算", "cheaper"), ("划算", "cheaper"), ("什么卡", "which gpus"),
    ("推荐", "recommend"),
    ("天气", "weather"), ("今天", "today"), ("预算", "budget "), ("报告", "report"), ("保存为", "save as "),
    ("瓶颈", "bottleneck"), ("能到多少", "how long"),
    ("最佳", "best"), ("最优", "best"), ("方案", "layout"), ("节点", "nodes"), ("台", " nodes "), ("两张", "2x "),
    ("一张", "1x "), ("四张", "4x "), ("八张", "8x "), ("单卡", "one gpu "), ("卡", " gpus "), ("小时", "hours"),
    ("天", "days"), ("数据", "data"), ("可以", "can i"), ("能不能", "can i"), ("能否", "can i"), ("能", "can i"),
    ("在", " on "), ("用", " with "), ("和", " and "), ("吗", ""), ("呢", ""), ("的", " "), ("个", " "),
    ("跟", " and "), ("上", " "),
)  # fmt: skip


def english(text: str) -> str:
    """`text` in English where it is a question of another language that is read here; else as it is."""
    if _CHINESE.search(text):
        return _chinese(text)
    language = _language(text)
    if language is None:
        return text
    text = _COMMA.sub(r"\1.\2", text)
    for pattern, plain in _PHRASES[language]:
        text = compiled(pattern).sub(plain, text)
    return text


def _language(text: str) -> str | None:
    lowered = text.lower()
    if len(re.findall(_ENGLISH, lowered)) >= 3:
        return None
    marks = {
        name: 2 * len(re.findall(_STRONG[name], lowered)) + len(re.findall(_WEAK[name], lowered)) for name in _STRONG
    }
    best = max(marks, key=lambda name: marks[name])
    return best if marks[best] >= 2 and marks[best] > 2 * len(re.findall(_ENGLISH, lowered)) / 2 else None


def _chinese(text: str) -> str:
    text = text.translate(_PUNCTUATION)
    text = re.sub(r"(\d+(?:\.\d+)?)\s*万亿", lambda m: f" {m[1]}T ", text)
    text = re.sub(r"(\d+(?:\.\d+)?)\s*(千|百)万", lambda m: f" {float(m[1]) * _HUNDREDS[m[2]]:g}M ", text)
    text = re.sub(r"(\d+(?:\.\d+)?)\s*(千|百|十)[亿億]", lambda m: f" {float(m[1]) * _BILLIONS[m[2]]:g}B ", text)
    text = re.sub(r"(\d+(?:\.\d+)?)\s*[兆]", lambda m: f" {m[1]}T ", text)
    text = re.sub(r"(\d+(?:\.\d+)?)\s*[亿億]", lambda m: f" {float(m[1]) * 100:g}M ", text)
    text = re.sub(r"(\d+(?:\.\d+)?)\s*万", lambda m: f" {float(m[1]) * 10:g}k ", text)
    text = _IN_AND_OUT.sub(lambda m: f" {m[2]} tokens {'in' if m[1] == '输入' else 'out'}, ", text)
    text = re.sub(r"并发(?:数|量|度)?(?=\s*[:是为=]?\s*\d)", " concurrency ", text)
    text = re.sub(r"([A-Za-z]+\d+\w*)\s*(\d+)\s*[枚台基块张]", r" \2x \1 ", text)
    text = re.sub(r"(\d+)\s*[张块枚]\s*(?=[呢吗吧,，。?？!！]|$)", r"\1 gpus ", text)
    text = re.sub(r"(\d+)\s*[张块枚]\s*", r"\1x ", text)
    for words, plain in _CHINESE_PHRASES:
        text = text.replace(words, f" {plain} ")
    return re.sub(r"\s+", " ", _CHINESE.sub(" ", text)).strip()
