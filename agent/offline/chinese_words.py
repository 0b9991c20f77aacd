"""Questions in Chinese and Japanese, in English words of the field; names and numbers stay.

Quantities are read by their measure words first ('两台8卡', '10万条', '每条600 token'), then phrase by phrase.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from agent.offline.dates import MONTHS
from agent.offline.page import compiled

CHARACTERS = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
_PUNCTUATION = str.maketrans(
    {"，": ", ", "？": "? ", "。": ". ", "、": ", ", "：": ": ", "；": "; ", "（": " (", "）": ") ", "！": "! "}
)
_DIGITS = {"零": 0, "一": 1, "二": 2, "两": 2, "双": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9}
# Number words count only before what is counted: '两台', '十六卡', '一个节点', '十万条'.
_NUMERAL = (
    r"(?<![第周期拜])([一二两双三四五六七八九十]{1,3})(?=\s*(?:[张块台枚卡机条轮万亿百千]|天(?!气)|小时|倍|节点|"
    r"个\s*(?:节点|机|gpu|卡|人|用户|并发|请求|epochs?|小时|月)))"
)
_N = r"((?>\d+(?:\.\d+)?)(?:[kM](?![a-z]))?+)"
_ABOUT = r"(?:平均|大概|大约|差不多|约|左右|的|长度|长|最长|有|是|为|:|\s)*"
_SET = r"(?:设置?[为成到]?|调[为成到]?|改[为成到]|降[为成到]|升[为成到]|加到|减到|开到|提到)"
_SWITCHED = r"((?:tp|pp|cp|ep|zero|q?lora|fp8|packing|offload(?:ing)?|重计算|梯度检查点|gradient checkpointing)\d?)"
_CARD = r"(?:(?:(?<![a-z])[ahblvt]|mi|gb|gh|rtx\s?)\d{1,4}[a-z0-9]*|[2-5]0[6-9]0(?:\s?ti)?)"
_WEEKDAYS = {
    "一": "monday", "二": "tuesday", "三": "wednesday", "四": "thursday", "五": "friday", "六": "saturday",
    "日": "sunday", "天": "sunday",
}  # fmt: skip
_CLOCK = {"早": " morning", "上": " morning", "中": " noon", "下": " evening", "晚": " evening"}
_HOUR = r"(早上?|上午|中午|下午|晚上?)?"
_BEFORE = r"\s*(?:之前|以前|前|截止|就?要|必须|得)"


def _digits(match: re.Match[str]) -> str:
    """'十六' as 16, '两' as 2."""
    word = match[1]
    if "十" not in word:
        return " " + "".join(str(_DIGITS[letter]) for letter in word)
    tens, _, ones = word.partition("十")
    return f" {10 * _DIGITS.get(tens, 1) + _DIGITS.get(ones, 0)}"


def _scaled(scale: dict[str, float], unit: str) -> Callable[[re.Match[str]], str]:
    return lambda match: f" {float(match[1]) * scale[match[2]]:g}{unit} "


def _nodes_of(match: re.Match[str]) -> str:
    """'两台8卡' is two nodes of 8; '两机16卡' are 16 in all, since no node is that large."""
    nodes, devices = int(match["nodes"]), int(match["devices"])
    each = match["each"] or devices <= _LARGEST_NODE or devices % nodes
    return f" {nodes} nodes of {devices if each else devices // nodes}x "


def _day(match: re.Match[str]) -> str:
    following = "next " if match[1] else ""
    return f" by {following}{_WEEKDAYS[match[2]]}{_CLOCK[match[3][0]] if match[3] else ''} "


def _tomorrow(match: re.Match[str]) -> str:
    return f" by tomorrow{_CLOCK[match[1][0]] if match[1] else ''} "


_LARGEST_NODE = 8
_SPANS = {"秒": "second", "分钟": "minute", "小时": "hour", "天": "day"}

# In order: deadlines and number words, scales, then what is counted.
_QUANTITIES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (rf"(?:本|这|(下))?个?(?:周|星期|礼拜)([一二三四五六日天]){_HOUR}{_BEFORE}", _day),
    (rf"明天{_HOUR}{_BEFORE}", _tomorrow),
    (r"(?:这|本)?个?(周|月|年)[末底]" + _BEFORE,
     lambda m: f" by end of {({'周': 'week', '月': 'month', '年': 'year'})[m[1]]} "),
    (r"(\d{1,2})月(\d{1,2})[日号]" + _BEFORE, lambda m: f" by {MONTHS[(int(m[1]) - 1) % 12]} {m[2]} "),
    (_NUMERAL, _digits),
    (r"(\d+(?:\.\d+)?)\s*(万)亿", _scaled({"万": 1}, "T")),
    (r"(\d+(?:\.\d+)?)\s*([千百])万", _scaled({"百": 1, "千": 10}, "M")),
    (r"(\d+(?:\.\d+)?)\s*([千百十])[亿億]", _scaled({"十": 1, "百": 10, "千": 100}, "B")),
    (r"(\d+(?:\.\d+)?)\s*([兆])", _scaled({"兆": 1}, "T")),
    (r"(\d+(?:\.\d+)?)\s*([亿億])", _scaled({"亿": 100, "億": 100}, "M")),
    (r"(\d+(?:\.\d+)?)\s*(万)", _scaled({"万": 10}, "k")),
    (r"(\d+(?:\.\d+)?)\s*(千)(?!瓦)", _scaled({"千": 1}, "k")),
    (r"(\d+)\s*(百)", _scaled({"百": 100}, "")),
    # data: how long each sample is, how many there are, how often
    (rf"每(?:一)?(?:条|个样本|个对话|份|对|篇|个例子)(?:数据|样本|对话)?{_ABOUT}{_N}\s*(?:个\s*)?(?:tokens?|左右|字)?",
     r" \1 tokens each "),
    (rf"{_N}\s*(?:个\s*)?tokens?\s*(?:一|每)(?:条|个样本|篇)", r" \1 tokens each "),
    (rf"(?:每|一)(?:个|条|道)?\s*(?:prompts?|问题|题目?|query)\s*{_ABOUT}(?:采样|生成|采|rollout|出)\s*{_N}\s*"
     r"(?:条|个|次|份)?(?:回答|回复|样本|responses?)?", r" \1 samples per prompt "),
    (r"(?:组大小|采样数|group\s*size)" + _ABOUT + _SET + r"?\s*(\d+)", r" group size \1 "),
    (rf"{_N}\s*对(?:偏好)?(?:数据|样本)?", r" \1 pairs "),
    (rf"{_N}\s*(?:条|个样本|个例子|份)(?:数据|样本|对话|指令|偏好|语料|样例)*", r" \1 samples "),
    (rf"{_N}\s*个?\s*(?:epochs?|轮次|轮|遍)(?!对话)", r" \1 epochs "),
    (r"(?<=[\dkm万亿])\s*元", " rmb "), (r"(?<=[\dkm万亿])\s*円", " yen "),
    # prompts and answers
    (rf"(?:最长|最大|最多)(?:的)?(?:输出|生成|回复|回答)(?:长度)?{_ABOUT}{_SET}?\s*{_N}\s*(?:个?\s*tokens?)?",
     r" answers up to \1 tokens, "),
    (rf"(?:输出|生成|回复|回答|response)\s*(?:长度)?(?:最长|最大|最多|长度){_ABOUT}{_SET}?\s*{_N}\s*"
     r"(?:个?\s*tokens?)?", r" answers up to \1 tokens, "),
    (rf"(?:平均|每次)?(?:输入|提示词?|prompt)\s*{_ABOUT}{_N}\s*(?:个?\s*tokens?)?(?!\s*(?:[条个次份]|samples))",
     r" \1 tokens in, "),
    (rf"(?:平均|每次)?(?:输出|生成|回复|回答){_ABOUT}{_N}\s*(?:个?\s*tokens?)?(?!\s*(?:[条个次份]|samples))",
     r" \1 tokens out, "),
    # devices
    (rf"从\s*(\d+)\s*(?:台|机|张卡?|块|卡|个?\s*(?:节点|gpu))?\s*({_CARD})?\s*(?:扩展?|扩容|增加?|加|提升|变)(?:到|至|成|为)\s*(\d+)\s*"
     r"(?:(张卡?|块|卡|个?\s*gpu)|台机?器?|机|个?\s*节点)",
     lambda m: f" {m[2] or ''} scaling from {m[1]} to {m[3]} {'gpus' if m[4] else 'nodes'}, "),
    (r"(?P<nodes>\d+)\s*(?:台|机|个?\s*节点)\s*(?:机器|服务器)?[的,，\s]*(?P<each>每[台机]|每个?节点|各)?\s*"
     r"(?P<devices>\d+)\s*(?:[张块枚]卡?|卡)\s*的?", _nodes_of),
    (r"每(?:台|机|个?节点)\s*(?:有|装)?\s*(\d+)\s*(?:[张块枚]卡?|卡)", r" \1 gpus per node "),
    (rf"(\d+)\s*卡\s*(?={_CARD})", r"\1x "),
    (r"每(?:张|块|个)?\s*(?:卡|gpu)的?\s*(?=(?:micro\s*)?batch|bs\b|批)", " per gpu "),
    (r"再?加\s*(\d+)\s*(台|个?节点|[张块]卡?|卡)",
     lambda m: f" {m[1]} more {'gpus' if m[2][0] in '张块卡' else 'nodes'} "),
    # how many requests come
    (rf"每(秒|分钟|小时|天)(?:大?约|有|处理|来)*\s*{_N}\s*(?:个|次|条)?(?:请求|调用|查询|问题)",
     lambda m: f" {m[2]} requests per {_SPANS[m[1]]} "),
    (rf"(?:日均|一天|每日)(?:大?约|有)*\s*{_N}\s*(?:个|次|条)?(?:请求|调用|查询)", r" \1 requests per day "),
    # limits of latency, and of what a setup can take
    (r"首\s*(?:个)?\s*(?:token|字|包|词)(?:的)?(?:延迟|时间|时延|响应)?", " ttft "),
    (r"(?:每|单|逐)个?\s*token(?:的)?(?:延迟|时间|时延)", " tpot "),
    (r"(?:要|得|必须|需要?)?(?:压到|压在|控制在|控制到|保持在|不超过|不高于|低于|小于|少于)\s*(?=[\d$])", " under "),
    (r"(\d+(?:\.\d+)?)\s*毫秒(?:之内|以内|内|以下)?", r" \1 ms "),
    (r"(\d+(?:\.\d+)?)\s*秒钟?(?:之内|以内|内|以下)?", r" \1 s "),
    (r"(\d+(?:\.\d+)?)\s*(天|小时|周)(?:之内|以内|内)",
     lambda m: f" within {m[1]} {({'天': 'days', '小时': 'hours', '周': 'weeks'})[m[2]]} "),
    (r"并发(?:数|量|度)?(?:最多|最大|最高|上限)[^\d,.?!]{0,8}(?:多少|几|多大|多高)|"
     r"(?:最多|最大|最高)[^\d,.?!]{0,6}(?:多少|几)(?:个|路)?并发|最大并发(?:数|量|度)?(?!\s*\d)(?:[^\d,.?!]{0,4}多少)?",
     " what is the max concurrency "),
    (r"最多[^\d,.?!]{0,6}(?:多少|几)(?:个)?(?:用户|人)(?:同时|一起|并发)?(?:用|使用|访问|在线)?",
     " what is the max concurrency "),
    (r"(?:上下文|序列)(?:长度)?(?:最多|最大|最长|上限)[^\d,.?!]{0,6}(?:多少|多长|多大|几)",
     " what is the longest context "),
    (r"最长能?(?:训|练|跑|支持|撑|开)?[^\d,.?!]{0,4}(?:多长|多大|多少)的?(?:上下文|序列)(?:长度)?",
     " what is the longest context "),
    (r"最大能?(?:训练|训|微调|跑|放|塞|部署)(?:得?下)?多大的?模型", " what is the largest model "),
    (rf"{_N}\s*步", r" \1 steps "),
    (r"(?:batch\s*size|batch|批大小)(?:最多|最大)[^\d,.?!]{0,6}(?:多少|多大|几)", " what is the max batch size "),
    # what is changed, left or taken instead
    (rf"(?:去掉|去除|不要|不用|不开|别用|别开|关掉|关闭|取消|拿掉|禁用)\s*{_SWITCHED}", r" no \1 "),
    (rf"{_SWITCHED}\s*(?:就|也)?(?:去掉|不要了?|不用了?|不开了?|关掉|关闭|关了|取消|拿掉)", r" no \1 "),
    (rf"(?:把|将)\s*((?:\d+\s*[x张块]\s*)?{_CARD}(?:\s\d+g)?)\s*(?:卡)?(?:都|全)?(?:换成|改成|替换成|换为|改为)",
     r" instead of \1, now with "),
    (r"(?:把|将)\s*([A-Za-z][ -~]{1,24}?\d+(?:\.\d+)?b)\s*(?:换成|改成|替换成|换为|改为)(?=\s*[A-Za-z])",
     r" instead of \1, now with "),
    (rf"(?:不用|别用|不要)\s*({_CARD}(?:\s\d+g)?)\s*(?:了|卡)*\s*[,，]?\s*(?:换成|改成|改用|换|用|改)",
     r" instead of \1, now with "),
    (r"不是\s*([ -~]{2,30}?)\s*,?\s*(?:而是|是)", r" not \1 but "),
    (rf"{_SET}(?=\s*\d)", " to "),
    (r"(?:写|保存|存|放|生成|输出|导出)(?:到|进|入|在)\s*(?=[\w./~-]+/|[\w.-]+\s*(?:目录|文件夹))",
     " write files to "),
    (r"并发(?:数|量|度)?(?=\s*(?:[:是为=到]|to\b)?\s*\d)", " concurrency "),
    (rf"({_CARD}(?:[ -]?\d{{2,3}}gb?)?)\s*(\d+)\s*(?:[枚台基块张]卡?|卡)", r" \2x \1 "),
    (r"(\d+)\s*[张块枚]\s*(?=[呢吗吧,，。?？!！]|$)", r"\1 gpus "),
    (r"(\d+)\s*[张块枚]卡?\s*", r"\1x "),
)  # fmt: skip
_PHRASES: tuple[tuple[str, str], ...] = (
    # Japanese; what it shares with Chinese is below.
    ("フルファインチューニング", "full fine-tuning"), ("ファインチューニング", "fine-tuning"),
    ("できますか", "can i"), ("入りますか", "does it fit"),
    ("収まりますか", "does it fit"), ("載りますか", "does it fit"),
    ("事前学習", "pretrain"), ("学習", "train"), ("何時間", "how many hours"), ("何日", "how many days"),
    ("いくら", "how much does it cost"), ("コスト", "cost"), ("推論", "inference"), ("メモリ", "memory"),
    ("コンテキスト", "context"), ("トークン", "tokens"), ("どのくらい", "how long"),
    ("能到多少", "how fast"), ("几天", "how many days"), ("几小时", "how many hours"),
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
    ("天气", "weather"), ("下雨", "weather"), ("今天", "today"), ("明天", "tomorrow"),
    ("预算", "budget "), ("报告", "report"), ("保存为", "save as "), ("美元", " dollars "), ("美金", " dollars "),
    ("启动命令", "launch files"), ("启动脚本", "launch files"), ("出一下", "write "),
    ("人民币", " rmb "), ("块钱", " rmb "), ("欧元", " euros "), ("日元", " yen "), ("港币", " hkd "),
    ("英镑", " gbp "),
    ("刀", " dollars "), ("竞价实例", "spot"), ("抢占式", "spot"), ("竞价", "spot"), ("按需", "on-demand"),
    ("按量付费", "on-demand"), ("包年包月", "reserved"), ("预留", "reserved"), ("重计算", "recompute"),
    ("梯度检查点", "gradient checkpointing"), ("全局", "global "), ("优化器", "optimizer"), ("量化", "quantized"),
    ("代替", " instead of "), ("而不是", " instead of "), ("替代", " instead of "), ("取代", " instead of "),
    ("学习率", "learning rate"), ("目录", " folder"), ("文件夹", " folder"), ("每张卡", "per gpu"), ("每卡", "per gpu"),
    ("每个节点", "per node"), ("全参", "full fine-tuning"),
    ("训", "train"), ("序列", "sequence"), ("能跑完", "can it be done"), ("跑完", "done"),
    ("换个问题", "new question:"), ("新问题", "new question:"), ("另一个问题", "new question:"),
    ("重新算一个", "new question:"), ("另算一个", "new question:"), ("从头开始算", "new question:"),
    ("先不管", "new question:"), ("不管了", "new question:"), ("算了", "never mind"),
    ("回到", "back to "), ("退回", "back to "), ("改回", "back to "), ("换回", "back to "), ("还原", "undo"),
    ("从头训", "pretrain from scratch"), ("从零训", "pretrain from scratch"), ("刚才", "previous"), ("谢谢", "thanks"),
    ("几个小时", "how many hours"), ("来得及", "can it be done"), ("最好", "best"), ("策略", "strategy"),
    ("切分", "split"), ("哪个快", "which is faster"), ("哪个更快", "which is faster"), ("哪个便宜", "which is cheaper"),
    ("哪个更便宜", "which is cheaper"), ("多大", "how large"), ("放到CPU", "offload to CPU"),
    ("放CPU", "offload to CPU"),
    ("卸载到CPU", "offload to CPU"), ("卸载", "offload"),
    ("秒", " s "), ("最快", "fastest"), ("最小", "smallest"), ("最少", "at least "), ("上线", "deploy"),
    ("服务", "serve"), ("区别", "difference"), ("最贵", "most expensive"), ("太慢", "too slow"),
    ("太贵", "too expensive"),
    ("瓶颈", "bottleneck"),
    ("最佳", "best"), ("最优", "best"), ("方案", "layout"), ("节点", "nodes"), ("台", " nodes "), ("单卡", "one gpu "),
    ("卡", " gpus "), ("小时", "hours"),
    ("天", "days"), ("数据", "data"), ("可以", "can i"), ("能不能", "can i"), ("能否", "can i"), ("能", "can i"),
    ("在", " on "), ("用", " with "), ("和", " and "), ("吗", ""), ("呢", ""), ("的", " "), ("个", " "),
    ("跟", " and "), ("上", " "),
)  # fmt: skip

_LONGEST_FIRST = sorted(_PHRASES, key=lambda phrase: -len(phrase[0]))


def english(text: str) -> str:
    text = text.translate(_PUNCTUATION)
    for pattern, plain in _QUANTITIES:
        text = compiled(pattern).sub(plain, text)
    for words, plain in _LONGEST_FIRST:
        text = text.replace(words, f" {plain} ")
    return re.sub(r"\s+", " ", CHARACTERS.sub(" ", text)).strip()
