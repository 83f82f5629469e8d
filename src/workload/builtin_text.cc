#include "workload/builtin_text.h"

namespace tokenstone::workload {

std::string_view builtin_sonnets() {
  return R"(Shall I compare thee to a summer's day?
Thou art more lovely and more temperate:
Rough winds do shake the darling buds of May,
And summer's lease hath all too short a date:
Sometime too hot the eye of heaven shines,
And often is his gold complexion dimm'd;
And every fair from fair sometime declines,
By chance, or nature's changing course, untrimm'd;
But thy eternal summer shall not fade
Nor lose possession of that fair thou ow'st;
Nor shall Death brag thou wander'st in his shade,
When in eternal lines to time thou grow'st:
So long as men can breathe or eyes can see,
So long lives this, and this gives life to thee.
When, in disgrace with fortune and men's eyes,
I all alone beweep my outcast state,
And trouble deaf heaven with my bootless cries,
And look upon myself, and curse my fate,
Wishing me like to one more rich in hope,
Featured like him, like him with friends possess'd,
Desiring this man's art and that man's scope,
With what I most enjoy contented least;
Yet in these thoughts myself almost despising,
Haply I think on thee, and then my state,
Like to the lark at break of day arising
From sullen earth, sings hymns at heaven's gate;
For thy sweet love remember'd such wealth brings
That then I scorn to change my state with kings.
When to the sessions of sweet silent thought
I summon up remembrance of things past,
I sigh the lack of many a thing I sought,
And with old woes new wail my dear time's waste:
Then can I drown an eye, unused to flow,
For precious friends hid in death's dateless night,
And weep afresh love's long since cancell'd woe,
And moan the expense of many a vanish'd sight:
Then can I grieve at grievances foregone,
And heavily from woe to woe tell o'er
The sad account of fore-bemoaned moan,
Which I new pay as if not paid before.
But if the while I think on thee, dear friend,
All losses are restored and sorrows end.
Not marble, nor the gilded monuments
Of princes, shall outlive this powerful rhyme;
But you shall shine more bright in these contents
Than unswept stone besmear'd with sluttish time.
When wasteful war shall statues overturn,
And broils root out the work of masonry,
Nor Mars his sword nor war's quick fire shall burn
The living record of your memory.
'Gainst death and all-oblivious enmity
Shall you pace forth; your praise shall still find room
Even in the eyes of all posterity
That wear this world out to the ending doom.
So, till the judgment that yourself arise,
You live in this, and dwell in lovers' eyes.
Like as the waves make towards the pebbled shore,
So do our minutes hasten to their end;
Each changing place with that which goes before,
In sequent toil all forwards do contend.
Nativity, once in the main of light,
Crawls to maturity, wherewith being crown'd,
Crooked eclipses 'gainst his glory fight,
And Time that gave doth now his gift confound.
Time doth transfix the flourish set on youth
And delves the parallels in beauty's brow,
Feeds on the rarities of nature's truth,
And nothing stands but for his scythe to mow:
And yet to times in hope my verse shall stand,
Praising thy worth, despite his cruel hand.
That time of year thou mayst in me behold
When yellow leaves, or none, or few, do hang
Upon those boughs which shake against the cold,
Bare ruin'd choirs, where late the sweet birds sang.
In me thou see'st the twilight of such day
As after sunset fadeth in the west,
Which by and by black night doth take away,
Death's second self, that seals up all in rest.
In me thou see'st the glowing of such fire
That on the ashes of his youth doth lie,
As the death-bed whereon it must expire
Consumed with that which it was nourish'd by.
This thou perceivest, which makes thy love more strong,
To love that well which thou must leave ere long.
Let me not to the marriage of true minds
Admit impediments. Love is not love
Which alters when it alteration finds,
Or bends with the remover to remove:
O no! it is an ever-fixed mark
That looks on tempests and is never shaken;
It is the star to every wandering bark,
Whose worth's unknown, although his height be taken.
Love's not Time's fool, though rosy lips and cheeks
Within his bending sickle's compass come:
Love alters not with his brief hours and weeks,
But bears it out even to the edge of doom.
If this be error and upon me proved,
I never writ, nor no man ever loved.
My mistress' eyes are nothing like the sun;
Coral is far more red than her lips' red;
If snow be white, why then her breasts are dun;
If hairs be wires, black wires grow on her head.
I have seen roses damask'd, red and white,
But no such roses see I in her cheeks;
And in some perfumes is there more delight
Than in the breath that from my mistress reeks.
I love to hear her speak, yet well I know
That music hath a far more pleasing sound;
I grant I never saw a goddess go;
My mistress, when she walks, treads on the ground:
And yet, by heaven, I think my love as rare
As any she belied with false compare.
)";
}

std::span<const std::string_view> plain_words() {
  static constexpr std::string_view words[] = {
      "about",    "after",  "again",  "air",     "all",      "along",   "also",    "an",     "and",      "answer",
      "any",      "are",    "around", "as",      "ask",      "at",      "away",    "back",   "be",       "because",
      "been",     "before", "below",  "best",    "better",   "between", "big",     "black",  "book",     "both",
      "boy",      "but",    "by",     "call",    "came",     "can",     "car",     "change", "city",     "close",
      "cold",     "come",   "could",  "country", "cut",      "day",     "did",     "do",     "does",     "done",
      "door",     "down",   "draw",   "dry",     "each",     "early",   "earth",   "east",   "eat",      "end",
      "even",     "every",  "eye",    "face",    "fact",     "fall",    "family",  "far",    "farm",     "fast",
      "father",   "feel",   "feet",   "few",     "field",    "find",    "fire",    "first",  "five",     "food",
      "foot",     "for",    "form",   "found",   "four",     "free",    "friend",  "from",   "full",     "game",
      "gave",     "get",    "girl",   "give",    "go",       "gold",    "good",    "got",    "great",    "green",
      "ground",   "group",  "grow",   "had",     "half",     "hand",    "hard",    "has",    "have",     "he",
      "head",     "hear",   "heart",  "heat",    "help",     "her",     "here",    "high",   "him",      "his",
      "hold",     "home",   "horse",  "hot",     "hour",     "house",   "how",     "if",     "in",       "into",
      "is",       "it",     "just",   "keep",    "kind",     "king",    "knew",    "know",   "land",     "large",
      "last",     "late",   "learn",  "leave",   "left",     "less",    "let",     "letter", "life",     "light",
      "like",     "line",   "list",   "little",  "live",     "long",    "look",    "love",   "low",      "made",
      "make",     "man",    "many",   "map",     "mark",     "may",     "me",      "mean",   "men",      "might",
      "mile",     "mind",   "money",  "moon",    "more",     "morning", "most",    "mother", "mountain", "move",
      "much",     "music",  "must",   "my",      "name",     "near",    "need",    "never",  "new",      "next",
      "night",    "no",     "north",  "not",     "note",     "now",     "number",  "of",     "off",      "often",
      "old",      "on",     "once",   "one",     "only",     "open",    "or",      "order",  "other",    "our",
      "out",      "over",   "own",    "page",    "paper",    "part",    "people",  "place",  "plan",     "plant",
      "play",     "point",  "press",  "put",     "question", "quick",   "rain",    "ran",    "read",     "real",
      "red",      "rest",   "right",  "river",   "road",     "rock",    "room",    "round",  "rule",     "run",
      "said",     "same",   "saw",    "say",     "school",   "sea",     "second",  "see",    "seem",     "self",
      "sentence", "set",    "she",    "ship",    "short",    "should",  "show",    "side",   "simple",   "since",
      "six",      "size",   "sleep",  "slow",    "small",    "snow",    "so",      "some",   "song",     "soon",
      "sound",    "south",  "stand",  "star",    "start",    "state",   "stay",    "step",   "still",    "stop",
      "story",    "street", "study",  "such",    "sun",      "sure",    "table",   "take",   "talk",     "tell",
      "ten",      "than",   "that",   "the",     "their",    "them",    "then",    "there",  "these",    "they",
      "thing",    "think",  "this",   "those",   "thought",  "three",   "through", "time",   "to",       "together",
      "told",     "too",    "took",   "top",     "town",     "travel",  "tree",    "true",   "try",      "turn",
      "two",      "under",  "until",  "up",      "us",       "use",     "very",    "voice",  "walk",     "want",
      "war",      "warm",   "was",    "watch",   "water",    "way",     "we",      "week",   "well",     "went",
      "were",     "west",   "what",   "wheel",   "when",     "where",   "which",   "while",  "white",    "who",
      "whole",    "why",    "will",   "wind",    "wish",     "with",    "wood",    "word",   "work",     "world",
      "would",    "write",  "year",   "yellow",  "yes",      "yet",     "you",     "young",  "your",     "zero"};
  return words;
}

}  // namespace tokenstone::workload
