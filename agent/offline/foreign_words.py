"""Common questions in Spanish, German, French, Portuguese and Italian, word by word as English.

Names and numbers stay; Chinese and Japanese are read in chinese_words.
"""

from __future__ import annotations

import re

from agent.offline import chinese_words
from agent.offline.calendar_words import deadlines
from agent.offline.page import compiled

_STRONG = {
    "de": r"^(?:und |oder )?(?:ohne|mit)\b|\b(?:passt|gib mir|zeig\w*|kostet|kosten|wie ?viele?n?|wie lange|"
    r"wie schnell|welche[rsn]?|trainieren|"
    r"feinabstimm\w+|"
    r"schreib\w*|"
    r"vergleich\w*|brauche[n]?|gr[öo](?:ß|ss)te[rsn]?|reicht|warum|statt(?:dessen)?|milliarden?|vollem|gleichzeitig\w*|"
    r"günstigst\w+|billigst\w+|nutzer|k[öo]nnen wir|kann ich|erstell\w*|erzeug\w*|rückgängig|speicher|knoten|"
    r"erkl[äa]r\w*|nimm|lieber|zur[üu]ck|raus|weglassen|unter|sp[äa]testens|fertig|(?:mon|diens|donners|frei|sams|"
    r"sonn)tag\w*|mittwoch|n[äa]chste\w*|"
    r"epochen|danke|exportier\w*|"
    r"beispiele|paare|antworten|doch|karten?|unterschied|wechsle?|ersetze?|tausche?|latenz|rang|pro (?:gpu|karte)|"
    r"sondern|sequenz\w*|kontext\w*|"
    r"[üu]ber|ordner|m[öo]chte|noch|anstelle|bitte)\b",
    "es": r"[¿¡]|^(?:y |o )?(?:sin|con)\b|\b(?:latencia|segundos|tambi[ée]n|sino|rango|por (?:gpu|tarjeta)|"
    r"cu[áa]nt[oa]s?|cu[áa]l(?:es)?|cabe[n]?|cuesta|entrenar|afinar|tarda\w*|millones|mil millones|"
    r"necesito|"
    r"puedo|genera(?:r|me)?|compara(?:r|me)?|m[áa]s barat[oa]|usuarios|por qu[ée]|ajuste fino|cambia|escribe|deshacer|"
    r"ahora con|qu[ée] gpus?|explica\w*|perd[óo]n|cuanti[zc]ad[oa]s?|en vez de|en lugar de|ejemplos|muestras|[ée]pocas|"
    r"respuestas|quita\w*|vuelve|qui(?:ero|siera)|tengo|ponlo|pon|p[áa]same|dame|lunes|martes|mi[ée]rcoles|jueves|"
    r"viernes|gracias|dime|expl[íi]ca\w*|"
    r"comp[áa]ra\w*|activa|batch global|el (?:batch|rango|lora|tp|pp)|diferencia|ma[ñn]ana|tarjetas?|"
    r"hasta|d[óo]lares|ser[íi]a|y si|sin el|carpeta|puedes)\b",
    "fr": r"^(?:et |ou |mais )?(?:sans|avec)\b|\b(?:remplace[rz]?|latence|secondes|aussi|rang|par (?:gpu|carte)|"
    r"combien|est-ce(?: que| qu')?|tient|tiennent|co[ûu]te\w*|entra[îi]ner|pr[ée]-?entra[îi]n\w*|milliards?|"
    r"g[ée]n[èe]re\w*|[ée]cris|compare[rz]|quel(?:le)?s?|puis-je|peut-on|utilisateurs|pourquoi|moins ch[eè]re?s?|"
    r"maintenant|"
    r"annule|explique\w*|plut[ôo]t|faut(?:-il)?|fini(?:e|es|r|sse|ssent)?|lundi|mardi|mercredi|jeudi|vendredi|merci|"
    r"n[oœ]e?uds?|batch global|le (?:batch|rang|lora|tp|pp)|demain|[çc]a|cartes?|[ée]chantillons|exemples|"
    r"[ée]poques|paires|r[ée]ponses|sortie|entr[ée]e|enl[èe]ve\w*|garde[rz]?|reviens|au lieu|dossier|d'ici|"
    r"[ée]cri[rs]\w*|finalement|je|chez|passe[rz]?|mets|voudrais|peux|dans)\b",
    "pt": r"\b(?:quant[oa]s?|preciso|treinar|cabe[m]?|custa|placas?|usu[áa]rios|milh(?:ões|oes|ão)|bilh\w+|posso|"
    r"voc[êe])\b",
    "it": r"\b(?:quant[ie]|quanto|addestr\w+|schede?|utenti|miliardi|milioni|posso|costa|al secondo|noleggiare|"
    r"ci sta)\b",
}  # fmt: skip
# Two of these make it that language: short follow-ups have nothing else.
_WEAK = {
    "de": r"\b(?:ich|wir|mir|ne[nrm]|l[äa]uft|sind|zum|je|nicht|auch|und|mit|auf|bei|oder|das|die|der|"
    r"ein(?:e[rmns]?)?|ist|für|jetzt|ohne|nur|was|wenn|dann|halb\w*)\b",
    "es": r"(?:^|\b)(?:que|lo|se|mi|del|es|más|y|con|en|una?|los|las|el|para|de|sin|ahora|si|por|solo|mejor)\b",
    "fr": r"\b(?:tu|il|qui|que|mes|pas|par|est|et|avec|sur|en|une?|les?|la|des?|du|pour|sans|si|ou|au|aux|mon|"
    r"fichier)\b",
    "pt": r"\b(?:com|em|um[a]?|para|sem|n[oa]s?|d[oa]s?|e)\b",
    "it": r"\b(?:con|su|una?|di|per|il|lo|gli|dei|della|fa|e)\b",
}  # fmt: skip
_ENGLISH = r"\b(?:the|what|how|does|is|with|and|for|can|will|my|we|i|on|of|it|that|this|if|to|which)\b"

# What can be switched off, as it is called in all of them.
_PART = (
    r"((?:tp|pp|cp|ep|zero|recompute|(?:gradient |activation )?checkpointing|(?:optimizer[- ]|cpu[- ])?offload(?:ing)?|"
    r"q?lora|fp8|packing))\b"
)
_SIZES = r"(tp|pp|cp|ep|dp|zero|(?:micro[- ]?|global[- ]?)?batch(?:[- ]?size)?|gbs|mbs|rank|seq\w*)"
# In order; longer phrases first. Applied to the text of that language only.
_PHRASES: dict[str, tuple[tuple[str, str], ...]] = {
    "de": (
        # As it is spoken: 'auf ner einzelnen 4090'
        (r"(?<![\w'])'?n(e[rnm]?)\b", r"ein\1"), (r"\bvllt\b\.?", "vielleicht"),
        (r"\bein(?:e[rnm]?)? epoche\b", "1 epoch"),
        (r"\b(?:ein(?:e[rnm]?)? )?halbe[rn]? sekunde\b", "500 ms"),
        (r"\b(?:gleichzeitig|parallel|zeitgleich)(?: (?:aktiv|online|nutzen|arbeiten|sind|davon|es|das|immer|nur|etwa|"
         r"ca\.?|vielleicht|so|maximal|rund|wohl|meist|h[öo]chstens))+ (\d+)(?=\s*(?:[.,?!]|$|leute|nutzer|davon))",
         r"\1 concurrent users"),
        (r"\b(?:was|wie ?viel) kostet (?:mich |uns |denn |so )*(?:gerade |aktuell )?(?:die |eine? )?(?:gpu-?)?stunde\b"
         r"(?: auf| mit| f[üu]r)?", "what is the price per hour of"),
        (rf"\b(?:lass|nimm|schmei(?:ß|ss)|mach|schalte?) (?:mal |bitte |doch )*(?:das |den |die )?{_PART}"
         r"(?: \w+)?? (?:weg|raus|aus|ab)\b", r"no \1"),
        (rf"\b{_PART}(?:,? (?:doch|ganz|komplett|bitte|lieber|mal|wieder|auch|einfach))*"
         r" (?:raus|weg|weglassen|raus(?:nehmen|lassen)|(?:ab|aus)schalten|deaktivieren|aus)\b", r"no \1"),
        (rf"\bkeine?[nrms]? {_PART}", r"no \1"),
        (r"\bbatch(?:gr[öo](?:ß|ss)e|[- ]size)? pro (?:gpu|karte)\b", "per-gpu batch size"),
        (r"\bbatchgr[öo](?:ß|ss)e\b", "batch size"), (r"\brang\b", "rank"),
        (r"\beine?[nm]? (?:knoten|node)\b", "1 node"),
        (r"\bnoch (\d+|zwei|drei|vier) (?=karten|gpus|knoten|nodes)", r"\1 more "), (r"\bexportier\w*\b", "export"),
        (r"(?<!mit )\bje (?=[\d.,]+ ?tok)", "each "), (r"\baufteilung\b", "split"),
        (r"\b(?:klappt|geht|funktioniert) das\b", "does it work"),
        (r"\b(?:vielen dank|danke(?:sch[öo]n)?)\b(?: sch[öo]n| dir)?", "thanks"), (r"\baktivier\w*\b", "enable"),
        (r"\bglobale?n?[- ](?=batch)", "global "),
        (r"\b(?:ersetz|tausch)e?n? (?:die |den |das )?([^,?!]{2,30}?) (?:durch|gegen)\b", r"replace \1 with"),
        (r"\bkomplett\w* (?=(?:fein|fine|ge?fine))", "full "),
        (r"\bfein ?(?:ab)?ge(?:tunt|stimmt)\b|\bge?fine-?tun(?:ed|t)\b", "fine-tune"),
        (r"\b(?:latenz|zeit) (?:bis )?(?:zum|des) ersten tokens?\b|\berste[snr]? tokens?\b", "ttft"),
        (r"\bmillisekunden?\b", "ms"),
        (rf"\b{_SIZES}(?: (?:doch|lieber|jetzt|mal|bitte|besser|dann|wieder))* auf (?=\d)", r"\1 to "),
        (r"\b(?:zur[üu]ck|wieder) (?:auf|zu[mr]?|nach)\b", "back to"),
        (r"\b(?:auf|zu) (?=[^,?!]{0,24}\bzur[üu]ck\b)", "back to "),
        (r"\b(?:neue|andere) frage\b|\b(?:was|etwas) (?:ganz )?anderes(?=\s*[:,])|\bvergiss (?:das|alles)\b",
         "new question"),
        (r"\bnoch (?:eine?n?|1) (?=karte|gpu|knoten|node)", "one more "),
        (r"(?<=back to )eine[rmns]?(?=\s*(?:[?.!,]|$))", "1 gpu"),
        (r"\ban(?:stelle| stelle)(?: von| der| des)*\b|\b(?:an)?statt (?:der|den|des|dem|die|das)\b", "instead of"),
        (r"\b(?:nimm|nehm(?:e[nt]?)?|verwende|benutze|nutze)\b(?: mal)?", "use"), (r"(?<=\d) ?mal ?(?=\d)", "x "),
        (r"(?<=\d)\s?(?:tausend|tsd\.?)(?=\W)", "k"), (r"\bbeispielen?\b|\bdatens[äa]tzen?\b", "examples"),
        (r"\bdatenpunkten?\b", "samples"), (r"\bpaaren?\b", "pairs"), (r"\bzeilen\b", "rows"),
        (r"\b(?:gespr[äa]che|konversationen|dialoge)n?\b", "conversations"), (r"\bepochen?\b", "epochs"),
        (r"\bschritten?\b", "steps"), (r"\bantworten\b", "answers"), (r"\beingabe\w*", "input"),
        (r"\bausgabe\w*", "output"), (r"\b(?:rein|herein)\b", "in"),
        (r"(?<=\d)(?: ?tokens?)? (?:im schnitt|im mittel|durchschnittlich)\b", " tokens on average"),
        (r"\b(?:im schnitt|im mittel|durchschnittlich)\b", "average"), (r"\bmit (?:je|jeweils)\b", "with"),
        (r"\bpro st[üu]ck\b|\bje st[üu]ck\b|\bjeweils\b", "each"), (r"\bà(?= \d)", "of"),
        (r"\bca\b\.?|\b(?:circa|etwa|rund|ungef[äa]hr|vielleicht)\b|\bso(?= \d)", "about"), (r"\bbis zu\b", "up to"),
        (r"\bunter\b", "under"), (r"\b[üu]ber\b(?= \d)", "over"), (r"\b(?:muss|m[üu]ssen)\b", "must"),
        (r"\bfertig\b(?: sein| werden)?", "be done"), (r"\bordner\b|\bverzeichnis\b", "folder"),
        (r"\bins\b", "into the"),
        (r"\bnach (?=[\w.~-]*/)", "to "),
        (r"\b(?:rechnern?|maschinen?|servern?)\b(?= (?:of|mit|with|je|à|\d))", "machines"),
        (r"\bauf abruf\b", "on-demand"), (r"\breserviert\w*\b", "reserved"),
        (r"\bbehalte?\b|\bbleib\w* (?:bei|auf)\b", "keep"),
        (r"\bunterschied\b", "difference"), (r"\btag\b", "day"), (r"\bgenug\b", "enough"),
        (r"\b(?:doch|halt|eben|eigentlich|bitte|mal|lieber)\b ?", ""),
        (r"\bnicht (?=[^,?!]{2,30},? sondern\b)", "not "), (r"\bsondern\b", "but"),
        (r"\bf[üu]nf\b", "5"), (r"\bsechs\b", "6"), (r"\bsieben\b", "7"), (r"\bneun\b", "9"), (r"\bzehn\b", "10"),
        (r"\bzw[öo]lf\b", "12"), (r"\bzweiunddrei(?:ß|ss)ig\b", "32"), (r"\bvierundsechzig\b", "64"),
        (r"\beine?[rnms]? einz(?:ige|elne)[rnms]?\b|\bnur eine[rnms]?\b", "a single"),
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
        (r"\bspeicher\b", "memory"),
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
        (r"\bdes\b|\bder\b|\bdie\b|\bden\b|\bdem\b", "the"), (r"\bist\b", "is"), (r"\bsind\b", "are"),
        (r"\bwas\b", "what"), (r"\bwenn\b", "if"),
    ),
    "es": (
        (r"\b(?:a )?(?:cu[áa]nto|c[óo]mo) (?:est[áa]|anda|va|sale|cuesta|vale|cobran) la hora "
         r"(?:de(?: una?| la)?|del|en)\b", "what is the price per hour of"),
        (r"\buna?(?= en (?:vez|lugar) de\b)|(?<=en vez de )una?(?=\s*(?:[?.!,]|$))|"
         r"(?<=en lugar de )una?(?=\s*(?:[?.!,]|$))", "1"),
        # What takes devices: 'y si pillo 8', 'si cojo dos'
        (r"\b(?:us|pill|coj|agarr|pong|tom|utiliz)(?:o|a?mos|[áa]ramos)\b|\bcogemos\b", "use"),
        (r"\bcomando\b", "command"), (r"\bpa'?(?= \w)", "for"),
        (r"\b(?:levant|arranc|lanz)(?:ar|o|amos)\b|\bmontar\b", "deploy"),
        (r"\bconcurrentes\b", "concurrent"), (r"\bhasta d[óo]nde\b", "how far"), (r"\bhasta\b", "up to"),
        (r"\b(?:subir|estirar|aumentar)\b", "raise"), (r"\bllegar (?=con\b)", "go "),
        (r"\blongitud (m[áa]xima )?de(?: la)? secuencia\b", r"\1sequence length"),
        (r"\blongitud (m[áa]xima )?de(?:l)? contexto\b", r"\1context length"),
        (rf"\b(?:qu[íi]ta(?:le|r|me)?|elimina\w*|saca\w*|desactiva\w*|nada de|fuera|ning[úu]n)(?: el|"
         rf" la)? {_PART}", r"no \1"),
        (r"\bcambi(?:a|ar|amos|e) (?:el |la |las |los )?([^,?!]{2,30}?) por (?=\S)", r"replace \1 with "),
        (r"\bbatch(?: size)? por (?:gpu|tarjeta)\b", "per-gpu batch size"), (r"\brango\b", "rank"),
        (r"\b(\d+|dos|tres|cuatro) (nodos?|tarjetas?|gpus?) m[áa]s\b", r"\1 more \2"),
        (r"\bun nodo\b", "1 node"), (r"\bnodo\b", "node"),
        (r"\bcomp[áa]ra(?:lo|la|los|las)\b", "compare it"), (r"\b(?:batch|lote) global\b", "global batch size"),
        (r"\bactiv(?:a|ar|amos|emos)\b", "enable"), (r"\b(?:reparto|partici[óo]n|divisi[óo]n)\b", "split"),
        (r"\b(?:much[ií]simas |muchas |mil )?gracias\b", "thanks"), (r"\bexpl[íi]ca(?:me|r)?\b", "explain"),
        (r"\bdiferencia\b", "difference"), (r"\bguárda(?:lo|los|la|las|me)\b", "save it"),
        (r"(?<=back to )una?(?: sola)?(?=\s*(?:[?.!,]|$))", "1 gpu"),
        (r"\bpor (?=(?:tarjeta|gpu|nodo|usuario|ejemplo|muestra|paso|prompt)\b)", "per "), (r"\bpero\b", "but"),
        (r"\b(?:latencia|tiempo) (?:del|al|hasta el) primer token\b|\bprimer token\b", "ttft"),
        (r"(?<=\d) ?segundos?\b", " s"), (r"(?<=\d) ?milisegundos?\b", " ms"), (r"\boptimizador\b", "optimizer"),
        (r"\b(?:vuelv[ea]\w*|volv(?:er|amos)|regresa\w*) (?:al?|con)\b", "back to"),
        (r"\b((?:pas|cambi|sub|baj|aument|reduc|pon)\w*\b[^,?!]{0,30}?) a (?=\d)", r"\1 to "),
        (rf"\b{_SIZES} (?:en|a) (?=\d)", r"\1 to "), (r"\ba (?=\d)", "at "),
        (r"\b(?:nueva|otra) pregunta\b|\botra cosa(?=\s*[:,])|\bolvida (?:eso|todo)\b|\bempe[cz]\w+ de nuevo\b",
         "new question"),
        (r"\botra (?:tarjeta|gpu)\b|\buna (?:tarjeta|gpu) m[áa]s\b", "one more gpu"),
        (r"\botro nodo\b|\bun nodo m[áa]s\b", "one more node"),
        (r"\ben (?=(?:la |el )?(?:carpeta|directorio)\b|[\w.~-]*/)", "in "),
        (r"\b(?:que )?no (?:(?:debe|puede|deber[íi]a)n? )?(?:pas[ea]r?|super[ea]r?|exced[ae]r?)n?(?: de)?(?: los|"
         r" las)? (?=\d)",
         "at most "),
        (r"\b(?:est[éáe]|quede|sea)\b(?= (?:por debajo|menos|bajo|como m[áa]ximo|at most))", "is"),
        (r"\bno (?=[^,?!]{2,30},? sino\b)", "not "), (r"\bsino\b", "but"),
        (r"\ben (?:vez|lugar) de(?: las?| los?|l)?\b", "instead of"), (r"\bp[oó]n(?:lo|la|los|las|me|er)?\b", "set"),
        (r"\b(?:p[áa]sa|env[íi]a|m[áa]nda|mu[ée]stra)me\b", "give me"),
        (r"\b(?:h[áa]z|prep[áa]ra|gen[ée]ra|escr[íi]be|s[áa]ca|cr[ée]a)me\b", "write"),
        (r"\bcu[áa]nto (?:me |nos )?(?:sal[ed]\w*|saldr[íi]a\w*|cobran|vale\w*)\b", "how much does it cost"),
        (r"\bcu[áa]nto (?:tiempo )?tardar\w+", "how long does it take"),
        (r"(?<=\d) ?mil\b(?! millones)", "k"), (r"\bmil millones de\b", "billion"),
        (r"(?<!por )\b(?:millones|mill[óo]n) de\b", "million"),
        (r"\b(?:ejemplos|instancias de datos)\b", "examples"), (r"\bmuestras\b", "samples"), (r"\bpares\b", "pairs"),
        (r"\bfilas\b|\bl[íi]neas\b", "rows"), (r"\bconversaciones\b|\bdi[áa]logos\b", "conversations"),
        (r"\binstrucciones\b", "instructions"), (r"\b[ée]pocas?\b", "epochs"), (r"\bpasos\b", "steps"),
        (r"\brespuestas?\b", "answers"), (r"\b(?:de|en la|como) entrada\b", "in"),
        (r"\b(?:de|en la|como) salida\b", "out"),
        (r"\bentradas?\b", "input"), (r"\bsalidas?\b", "output"), (r"\bcada un[oa]\b", "each"),
        (r"\b(?:de media|(?:de|en) promedio)\b", "on average"), (r"\bunos?(?= \d)|\bunas(?= \d)", "about"),
        (r"\baprox(?:imadamente|\.)?|\balrededor de\b|\bm[áa]s o menos\b", "about"), (r"\bsobre\b", "on"),
        (r"\bpor debajo de\b", "under"), (r"\bcomo m[áa]ximo\b", "at most"),
        (r"\bmantén\w*\b|\bd[ée]ja(?:lo|la|ndo)?\b", "keep"),
        (r"\b(?:quiero|querr[íi]a|quisiera)\b", "i want to"), (r"\btengo\b|\btenemos\b", "i have"),
        (r"\bcarpeta\b|\bdirectorio\b", "folder"), (r"\bal\b", "to the"),
        (r"\b(?:m[áa]quinas?|servidores)\b", "machines"),
        (r"\bbajo demanda\b", "on-demand"), (r"\breservad[oa]s?\b", "reserved"), (r"\blongitud\b", "length"),
        (r"\bventana de contexto\b", "context window"), (r"\btama[ñn]o de (?:lote|batch)\b", "batch size"),
        (r"\b(?:terminado|listo|acabado)\b", "done"), (r"\bal mes\b", "per month"), (r"\bpor hora\b", "per hour"),
        (r"\bcinco\b", "5"), (r"\bseis\b", "6"), (r"\bsiete\b", "7"), (r"\bnueve\b", "9"), (r"\bdiez\b", "10"),
        (r"\bdoce\b", "12"), (r"\bdiecis[ée]is\b", "16"), (r"\btreinta y dos\b", "32"), (r"\bsesenta y cuatro\b", "64"),
        (r"\bcien\b", "100"), (r"\bmil\b(?! millones)(?= \w)", "1000"),
        (r"\buna? (?:sol[ao]|[úu]nic[oa])\b|\bsolo una?\b", "a single"),
        (r"\bel doble(?: de (?:gpus?|tarjetas))?\b", "double the gpus"),
        (r"\bla mitad(?: de (?:las )?(?:gpus?|tarjetas))?\b", "half the gpus"),
        (r"\bdobl\w+ (?:el n[úu]mero|la cantidad) de (?:gpus?|tarjetas)\b", "double the gpus"),
        (r"\bcu[áa]nt[oa]s\b", "how many"), (r"\bdesde cero\b", "from scratch"), (r"\by si\b", "what if"),
        (r"\bqu[ée] configuraci[óo]n (?:me )?(?=recomiend|aconsej)", "what setup do you "),
        (r"\baconsej\w+\b", "recommend"), (r"\b(?:de|en la) entrada\b", "in"), (r"\b(?:de|en la) salida\b", "out"),
        (r"\ba la vez\b|\bal mismo tiempo\b", "at once"), (r"\bclientes?\b", "clients"),
        (r"\bpor mill[óo]n de\b", "per million"),
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
        (r"\bcomment r[ée]partir (?:un|une|le|la|l'|du)?\b", "how should i split"),
        (r"\bjusqu'o[ùu]\b", "how far"), (r"\bjusqu'(?:à|a|aux?)\b", "up to"),
        (r"\b(?:monter|aller) (?=en\b)", "go "), (r"\b(?:monter|pousser|augmenter)\b", "raise"),
        (r"\blongueur (?:de |des |du )?(?:la )?s[ée]quences?\b", "sequence length"),
        (r"\blongueur (?:de |du )?contexte\b", "context length"),
        (r"\b(?:à combien est|combien co[ûu]te|c'est combien|combien pour) l'heure (?:de |d'une? |du |d'|sur |en )",
         "what is the price per hour of "),
        (r"\bune?(?= au lieu)|(?<=au lieu d')une?(?=\s*(?:[?.!,]|$))", "1"),
        (r"\b(?:je |j'|on |nous )(?:en )?(?:prend(?:s|rait)?|prenons|utilis(?:e|ons))\b", "use"),
        (rf"\b(?:enl[èe]ve[rz]?|vire[rz]?|retire[rz]?|supprime[rz]?|d[ée]sactive[rz]?|pas de|coupe[rz]?|laisse tomber)"
         rf"(?: le| la)? (?:l')?{_PART}", r"no \1"),
        (r"\b(?:reviens|revenons|revenir|repasse[rz]?|repassons|on revient|retourne[rz]?|retour) (?:à|a|sur|en|au|"
         r"aux)\b", "back to"),
        (r"\bremplac(?:e[rz]?|ons) (?:le |la |les |l')?([^,?!]{2,30}?) par\b", r"replace \1 with"),
        (r"\bbatch(?: size)? par (?:gpu|carte)\b", "per-gpu batch size"), (r"\brang\b", "rank"),
        (r"\b(\d+|deux|trois|quatre) (n[oœ]e?uds|cartes|gpus?) (?:de plus|suppl[ée]mentaires|"
         r"en plus)\b", r"\1 more \2"),
        (r"\bun n[oœ]e?ud\b", "1 node"), (r"\bn[oœ]e?ud\b", "node"),
        (r"\bcompare[rz]?-(?:le|la|les)\b", "compare it"), (r"\bbatch global\b", "global batch size"),
        (r"\bactive[rz]?\b", "enable"), (r"\b(?:d[ée]coupage|r[ée]partition)\b", "split"),
        (r"\bmerci\b(?: beaucoup| bien)?", "thanks"), (r"\b(?:fais|faites|pr[ée]pare[rz]?|sors)-moi\b", "write"),
        (r"\b(?:envoie|file|montre|passe)-moi\b", "give me"),
        (r"\b(?:range|mets|enregistre|sauve|[ée]cris)-(?:le|la|les)\b", "save it"),
        (r"(?<=back to )une?(?: seule)?(?=\s*(?:[?.!,]|$))", "1 gpu"),
        (r"\b(?:latence du|temps (?:jusqu')?au|d[ée]lai du) premier (?:token|jeton)\b|\bpremier (?:token|"
         r"jeton)\b", "ttft"),
        (r"(?<=\d) ?secondes?\b", " s"), (r"(?<=\d) ?millisecondes?\b", " ms"),
        (r"\bcombien d(?:e |')(?=jours|heures|semaines|mois)", "how many "),
        (r"\bpass(?:e|ez|er|ons) (?:à|en|sur|au)\b", "change to"),
        (r"\bne (?:d[ée]passe|doi\w+ pas d[ée]passer)(?: pas)?\b|\binf[ée]rieure? à\b", "at most"),
        (r"\bpas (?=[^,?!]{2,30},? mais\b)", "not "),
        (r"\b((?:passe|monte|descend|baisse|augmente|change|mets|met)(?:[rstz]|"
         r"ons)?\b[^,?!]{0,30}?) à (?=\d)", r"\1 to "),
        (r"\b(?:nouvelle|autre) question\b|\bautre chose(?=\s*[:,])|\boublie (?:[çc]a|tout)\b|\bon repart de z[ée]ro\b",
         "new question"),
        (r"\b(?:à partir )?de z[ée]ro\b", "from scratch"), (r"\bà la fois\b|\ben parall[èe]le\b", "at once"),
        (r"\bune? (?:carte|gpu) (?:de plus|suppl[ée]mentaire)\b|\bencore une? (?:carte|gpu)\b", "one more gpu"),
        (r"\bun n[oœ]e?ud (?:de plus|suppl[ée]mentaire)\b|\bencore un n[oœ]e?ud\b", "one more node"),
        (r"\b(?:est-ce qu(?:e |'))?(?:[çc]a|cela) (?:tient|rentre|passe|marche|tiendrait|rentrerait)\b", "does it fit"),
        (r"\b(?:au lieu|à la place) (?:de la |de |des |du |d')", "instead of "), (r"\bà la place\b", "instead"),
        (r"\bplut[ôo]t que (?:de |des |les |la |le )?", "rather than "),
        (r"\bquoi comme gpus?\b", "which gpus"), (r"\bmet(?:s|tez|tre|tons)\b", "set"),
        (r"(?<=\d) mille\b", "k"), (r"\bmillions? (?:de |d')", "million "), (r"\bexemples\b", "examples"),
        (r"\b[ée]chantillons\b", "samples"), (r"\bpaires\b", "pairs"), (r"\blignes\b", "rows"),
        (r"\bdialogues\b", "dialogues"),
        (r"\b[ée]poques?\b", "epochs"), (r"\b[ée]tapes\b|(?<=\d) pas\b", "steps"), (r"\br[ée]ponses?\b", "answers"),
        (r"\b(?:en|d'|à l') ?entr[ée]e\b", "in"), (r"\b(?:en|de|à la) sortie\b", "out"), (r"\bentr[ée]es?\b", "input"),
        (r"\bsorties?\b", "output"), (r"\bchacune?s?\b", "each"), (r"\b(?:en|de) moyenne\b", "on average"),
        (r"\benviron\b|\bà peu pr[èe]s\b", "about"), (r"\ben dessous de\b|\bsous (?=\d+ ?m?s\b|\$)", "under "),
        (r"\b(?:d'ici|sous) (?=\d+ ?(?:h\b|heures?|jours?|semaines?))", "within "), (r"\bsemaines?\b", "weeks"),
        (r"\b(?:il )?faut (?:que (?:ce soit|ça soit|cela soit)|que [çc]a finisse)\b|\bdoit [êe]tre\b", "it must be"),
        (r"\b(?:fini|termin[ée]|pr[êe]t)e?s?\b", "done"), (r"\bfini(?:r|sse)\b", "finish"), (r"\bchez\b", "at"),
        (r"\bsur (?:des|les)\b", "on"),
        (r"\bà (?=\d)", "at "), (r"\bdans\b", "in"), (r"\b(?:dossier|r[ée]pertoire)\b", "folder"),
        (r"\b(?:garde[rz]?|gardons|laisse[rz]?)\b", "keep"), (r"\bmais\b", "but"),
        (r"\b(?:je voudrais|je veux|j'aimerais)\b", "i want to"),
        (r"\bj'ai\b", "i have"), (r"\b(?:machines|serveurs)\b", "machines"), (r"\bà la demande\b", "on-demand"),
        (r"\br[ée]serv[ée]e?s?\b", "reserved"), (r"\blongueur\b", "length"), (r"\bmaxi\b", "max"),
        (r"\ben fait\b|\bfinalement\b", "actually"), (r"\bpar heure\b|\bde l'heure\b", "per hour"),
        (r"\b(?:d[ée]sol[ée]e?|pardon)\b", "sorry"), (r"\bcinq\b", "5"), (r"\bsix\b", "6"), (r"\bsept\b", "7"),
        (r"\bneuf\b", "9"),
        (r"\bdix\b", "10"), (r"\bdouze\b", "12"), (r"\bseize\b", "16"), (r"\btrente-deux\b", "32"),
        (r"\bsoixante-quatre\b", "64"), (r"\bcent\b", "100"), (r"\bmille\b", "1000"),
        (r"\bune? seule?\b|\bune? unique\b", "a single"),
        (r"\bdoubl\w+ le nombre de (?:gpus?|cartes)\b", "double the gpus"),
        (r"\bd'o[ùu] vien(?:t|nent) (?:la |le |les )?([^?.!]+?)(?= pour| sur| avec|\s*[?.!]|$)",
         r"where does the \1 come from"),
        (r"\bmoins de\b", "less than"), (r"\ben m[êe]me temps\b", "at once"), (r"\bpar\b", "per"),
        (r"\ben entr[ée]e\b", "in"), (r"\ben sortie\b", "out"), (r"\blatence\b", "latency"),
        (r"\bd[ée]bit\b", "throughput"), (r"\bparall[ée]l\w+\b", "parallelism"), (r"\bmeilleure?s?\b", "best"),
        (r"\bconseill\w+\b", "recommend"), (r"\brapport\b", "report"), (r"\benregistre\w*\b", "save"),
        (r"\bcomme\b", "as"), (r"\boptimiseurs?\b", "optimizer"), (r"\bbits\b", "bit"),
        (r"\ble double(?: de (?:gpus?|cartes))?\b|\bdeux fois plus(?: de gpus?)?\b", "double the gpus"),
        (r"\bla moiti[ée](?: des (?:gpus?|cartes))?\b", "half the gpus"), (r"\bcombien de temps\b", "how long"),
        (r"\bcombien (?:[çc]a |cela )?co[ûu]te\w*\b", "how much does it cost"),
        (r"\bcombien de\b(?= (?:gpus?|h\d|a\d|b\d|cartes|utilisateurs|n[oœ]e?uds|tokens|jetons|requ))", "how many"),
        (r"\bcombien de (?=\w*\d)", "how many "),
        (r"\bcombien d['e]\s?(?=utilisateurs|requ[êe]tes|clients)", "how many "), (r"\bcombien\b", "how much"),
        (r"\bco[ûu]te\w*\b|\bprix\b|\bco[ûu]ts?\b", "cost"),
        (r"\bqu'est-ce que je (?:loue|prends)\b", "what should i rent"), (r"\b(?:au|le) moins cher\b", "cheapest"),
        (r"\best-ce qu(?:e|')\s?", "does "), (r"\b(?:tient|tiennent|rentre|passe)\b", "fits"),
        (r"\bpuis-je\b|\bpeut-on\b|\bje peux\b", "can i"),
        (r"\bme faut-il\b|\bfaut-il\b|\bil (?:me )?faut\b", "do i need"),
        (r"\bau moins\b|\bau minimum\b", "at least"),
        (r"\b(?:fine-?tuning|affinage|ajustement) complet\b", "full fine-tuning"),
        (r"\baffiner\b|\bfine-?tuner\b", "fine-tune"), (r"\bpr[ée]-?entra[îi]n\w+", "pretrain"),
        (r"\bentra[îi]n\w+", "train"), (r"\b(?:la |le |les )?moins ch[eè]re?s?\b", "cheapest"),
        (r"\bpasser(?= [\d.,]+ ?(?:milliards?|millions?|[mbg])?(?: de)? tok)", "train on"),
        (r"\ben full\b", "full fine-tuning"),
        (r"\b(?:que|quoi|qu'est-ce que je|que dois-je) (?:devrais-je |dois-je |faut-il |peut-on )?louer?\b",
         "what should i rent"),
        (r"\blouer?\b", "rent"), (r"\bacheter\b", "buy"), (r"\bplus (?:vite|rapide)\b", "faster"),
        (r"\bplus long(?:ue)?\b", "longest"), (r"\bplus grand(?:e)?\b|\bplus gros(?:se)?\b", "largest"),
        (r"\bmaxim(?:um|ale?)\b", "maximum"), (r"\bcontexte\b", "context"),
        (r"\bs[ée]quences?\b(?! length)", "sequences"), (r"\btaille de (?:lot|batch)\b|\blots?\b", "batch size"),
        (r"\bm[ée]moire\b", "memory"),
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
# '50 users concurrent' stands the other way round in English.
_AT_ONCE = re.compile(r"\b(users|requests|clients|sessions|people) concurrent\b", re.IGNORECASE)
# Digits in threes; behind a space only before what is counted, since numbers may also stand side by side.
_DOTS = re.compile(r"(?<![\w.,$-])(?!0)\d{1,3}(?:\.\d{3})+(?:,\d+)?(?![\d\w]|[.,]\d)")
_COUNTED = (
    r"(?:tok|jet|ex|pair|[ée]ch|s[ée]q|[ée]tap|requ|util|prompt|ligne|pas\b|conv|dialog|ejem|muestr|par|fila|paso|usu|"
    r"milliard|million|mille|gpus?\b|cartes?\b|tarjet|karten|beisp|samp|datens|zeil|schritt|nutz|anfr|paar|gespr|"
    r"dollar|d[óo]lar|euro|[€$])"
)
_SPACES = re.compile(
    rf"(?<![\w.,-])\d{{1,3}}(?:[\u00a0\u202f\u2009']\d{{3}})+(?!\d)|"
    rf"(?<![\w.,-])\d{{1,3}}(?: \d{{3}})+(?= (?:de |d')?{_COUNTED})|"
    rf"(?:(?<=quence de )|(?<=quences de )|(?<=quence à )|(?<=contexte de )|(?<=contexte à )|(?<=batch de )|"
    rf"(?<=batch à )|"
    rf"(?<=sortie )|(?<=entrée )|(?<=sortie de )|(?<=entrée de )|(?<=ponses de ))\d{{1,3}}(?: \d{{3}})+(?!\d| [\w]*\d)",
    re.IGNORECASE,
)
# One may be in another language than the next.
_SENTENCES = re.compile(r"(?<=[.?!] )(?=[^\W\d]|[¿¡])")
_COMMA = re.compile(r"(?<![\d,.])(\d+),(\d{1,2})(?!\d|,)")


def english(text: str) -> str:
    """`text` in English where it is a question of another language that is read here; else as it is."""
    if chinese_words.CHARACTERS.search(text):
        return chinese_words.english(text)
    if language := _language(text):
        return _translated(text, language)
    sentences = _SENTENCES.split(text)
    if len(sentences) == 1:
        return text
    return "".join(_translated(one, language) if (language := _language(one)) else one for one in sentences)


def _translated(text: str, language: str) -> str:
    text = _COMMA.sub(r"\1.\2", _ungrouped(text))
    for pattern, plain in (*deadlines(language), *_PHRASES[language]):
        text = compiled(pattern).sub(plain, text)
    return _AT_ONCE.sub(r"concurrent \1", text)


def _ungrouped(text: str) -> str:
    """'50.000', '1.250.000,5', "60'000" and '60 000 paires' without what groups their digits."""
    text = _DOTS.sub(lambda number: number[0].replace(".", "").replace(",", "."), text)
    return _SPACES.sub(lambda number: re.sub(r"\D", "", number[0]), text)


def _language(text: str) -> str | None:
    lowered = text.lower()
    if len(re.findall(_ENGLISH, lowered)) >= 3:
        return None
    marks = {
        name: 2 * len(re.findall(_STRONG[name], lowered)) + len(re.findall(_WEAK[name], lowered)) for name in _STRONG
    }
    best = max(marks, key=lambda name: marks[name])
    return best if marks[best] >= 2 and marks[best] > 2 * len(re.findall(_ENGLISH, lowered)) / 2 else None
