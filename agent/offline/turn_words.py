"""Words about the conversation itself: thanks, help, going back, beginning anew, insisting."""

from __future__ import annotations

_POLITE = (
    r"(?:ok(?:ay)?|no|nope|yes|yep|yeah|thanks?|thank you|thx|ty|cheers|great|perfect|cool|nice|awesome|got it|bye|"
    r"goodbye|all good|sounds good|makes sense|understood|(?:really |very )?helpful|a lot|so much|very much|lol|"
    r"that(?:'?s| is| was| helps| helped)?|all|it|for (?:now|that|it|today|(?:the|your) \w+(?: reply| answer| help)?)|"
    r"good|done|later|see you|again|have a \w+ (?:day|one|weekend)|(?:are )?(?:yo)?u there)"
)
THANKS = rf"^(?:\W*{_POLITE}(?!\w))+\W*$"
HELP = (
    r"^\W*(?:hi|hello|hey|help|good (?:morning|evening|afternoon)|what can you do|who are you|"
    r"how does this work|how do i use)\b"
)
RESET = (
    r"\b(?:new question|start over|from the beginning|forget (?:that|it|everything|all)|reset|new plan)\b[:,.]?|"
    r"^\W*(?:(?:ok(?:ay)?|now|and|so|right|well|on to|for|next)\W+)*(?:something (?:else|new|(?:completely |totally |"
    r"entirely )?different)|(?:an? )?(?:(?:new|different|other|another|unrelated|next)\W+)+(?:question|topic|task|job|"
    r"thing|plan|project|case|one))(?: now)?\s*[:,.;!—–-]"
)
BACK = (
    r"^\W*(?:(?:ok(?:ay)?|hm+|nah)\W+)*actually,? no\b(?=.*\binstead\b)|"
    r"\b(?:go back(?! to (?:the )?\d)|undo|(?:ditch|scrap|drop|discard) (?:that|this|it|those|the (?:last|"
    r"previous) \w+)(?! (?:back |down )?to\b)|(?:put|change|turn|switch|set|take|roll) (?:it|that|this|them) back|"
    r"(?:as|like) (?:it was )?before|the way it was|never ?mind that|"
    r"back to (?:the )?(?:previous|last|first|original|one before)\w*|back to (?:the|my|our) plan|"
    r"back to (?:what|how|where) (?:it|that|we) (?:was|were|had)|revert)\b"
    r"(?:(?: to)? (?:the )?(?P<which>first|original)\w*)?"
)
OF_A_PLAN = (
    r"\b(?:the|this|that|my|our|previous|last|current|earlier|old) (?:plan|scenario|setup|run|config\w*|estimate|"
    r"answer)\b|"
    r"\b(?:make|get|export|save|compare|undo|revert|double|halve) (?:it|that|this|them)\b"
)
ANYWAY = r"\b(?:anyway|anyhow|regardless|nevertheless|even so)\b"
