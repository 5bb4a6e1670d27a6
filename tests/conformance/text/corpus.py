"""Texts that tokenizers get wrong."""

TEXTS = [
    "", " ", "  ", "   ", "\n", "\n\n", "\n\n x", "\t", "\t\tx", " \n \t \r\n ", "x ", " x", "  x",
    "x  y   z", "Hello world", " Hello world ", "Hello, world!  How's it going? I'll say they've gone.",
    "12345678 3.14", "0", "007", "1,234,567.89e-10", "x1y22z333", "\u0661\u0662\u0663 \u00b2\u00b3 \u2160\u2161",
    "Caf\u00e9 d\u00e9j\u00e0 vu \u2014 123 \U0001f60a", "Cafe\u0301 de\u0301ja\u0300 vu", "e\u0301 \u00e9 \u212b \u00c5 A\u030a",
    "\U0001f600\U0001f999\u6f22\u5b57", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f1e9\U0001f1ea",
    "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c\u3002", "\u4f60\u597d\uff0c\u4e16\u754c\uff01 2024\u5e741\u67081\u65e5", "\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!", "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e", "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd",
    "\u00a0non\u2003breaking\u3000spaces\u2028line\u2029para\u0085next", "zero\u200bwidth\ufeffbom",
    "int main(void) {\n  for (int i = 0; i < 10; ++i) {\n\tprintf(\"%d\\n\", i);\n  }\n}\n",
    "def f(x):\n    return x ** 2  # square\n\n\nclass A:\n    pass\n", "a=1;b=2;;c+=a&&b||!c->d::e<f>();",
    "SELECT * FROM t WHERE a='it''s' AND b<>\"x\";", "https://example.org/a/b?c=d&e=f#g", "<div class=\"a\">b&nbsp;c</div>",
    "snake_case camelCase PascalCase SCREAMING_CASE kebab-case", "''s 'S 'T 'LL 've 'RE 'D 'M don't DON'T",
    "...!!!???---===***", "$100 \u20ac200 \u00a3300 100%", "\u2013\u2014\u2018\u2019\u201c\u201d\u2026", "\u2581 \u2581\u2581x \u0120y",
    "a" * 100, " " * 63 + "x", "=" * 77, "\n" * 9 + "x", "ab" * 50, "\U0001f600" * 17,
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "<|im_start|>user", "x<|im_end|>y", " <|im_end|> ",
    "<|im_start|><|im_start|>", "<|im_start", "<|endoftext|>", "a<s> b", "<s>a</s> b", "<unk>", "<0x41><0x0A>",
    "[INST] hello [/INST]", "\u0000\u0001\u007f", "\ufffd\ufffe", "Zalgo: Z\u0351\u036b\u0343a\u0328l\u0335g\u0321o\u0348",
]
