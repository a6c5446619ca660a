/* What files of probes hold: the canonical JSON is that of Python's
 * json.dumps(…, sort_keys=True, separators=(",", ":"), ensure_ascii=False), ids
 * that no file gives are those of its hashlib.sha256, the ids of the sets are
 * b3sum's. */
#ifndef UNIT_PROBES_ROWS_H
#define UNIT_PROBES_ROWS_H

#include <stdbool.h>
#include <stddef.h>

/* clang-format off */
static const struct {
    const char *name, *path, *text;
    const char *pattern;
    bool escapes;
    const char *json, *id, *unused;
} probes_rows[] = {
    { "a line is a probe", "p.txt",
      "What is 2+2?\nWho?\n",
      NULL, false,
      "{\"probes\":[{\"id\":\"52cb6b5e4a03\",\"prompt\":\"What is "
      "2+2?\"},{\"id\":\"d991a24e8e04\",\"prompt\":\"Who?\"}],\"sc"
      "hema\":\"ballast/probes/1\"}",
      "4cdcbdb6f680434148fd2723a4d129f0e692a0cf9009df36f25214a9a13aeea3",
      "" },
    { "the last line need not end", "p.txt",
      "a\nb",
      NULL, false,
      "{\"probes\":[{\"id\":\"ca978112ca1b\",\"prompt\":\"a\"},{\""
      "id\":\"3e23e8160039\",\"prompt\":\"b\"}],\"schema\":\"balla"
      "st/probes/1\"}",
      "89b54bfa44a4d1d6c56dee978aaf5d68e1b432ec3f8e5d0f89e8c474f61cc664",
      "" },
    { "blank lines are none, other blanks stay", "p.txt",
      "\n  \n a \n\t\nb\t\n",
      NULL, false,
      "{\"probes\":[{\"id\":\"cbf7f30004f3\",\"prompt\":\" a \"},{"
      "\"id\":\"4eb805ab4fdf\",\"prompt\":\"b\\t\"}],\"schema\":\""
      "ballast/probes/1\"}",
      "0af1537e947677364ae779ce460d90644cf2decee51cbf32de6c48271e04e34e",
      "" },
    { "lines of DOS, and a byte order mark", "p.txt",
      "\357\273\277a\r\nb\r\n\r\nc",
      NULL, false,
      "{\"probes\":[{\"id\":\"ca978112ca1b\",\"prompt\":\"a\"},{\""
      "id\":\"3e23e8160039\",\"prompt\":\"b\"},{\"id\":\"2e7d2c03a"
      "950\",\"prompt\":\"c\"}],\"schema\":\"ballast/probes/1\"}",
      "3c5e59153b5a564c313c363acaaebb7af7a6f181a57b2f0341979f88acb56451",
      "" },
    { "a carriage return that ends no line", "p.txt",
      "a\rb\nc\r",
      NULL, false,
      "{\"probes\":[{\"id\":\"af9081672dd5\",\"prompt\":\"a\\rb\"}"
      ",{\"id\":\"42b965edf1a6\",\"prompt\":\"c\\r\"}],\"schema\":"
      "\"ballast/probes/1\"}",
      "84449789c578011e7f0a268343287881ca6619ea00f78ea969f041939a105945",
      "" },
    { "backslashes are themselves", "p.txt",
      "a\\nb\\q\n",
      NULL, false,
      "{\"probes\":[{\"id\":\"5f8f1592fe16\",\"prompt\":\"a\\\\nb\\"
      "\\q\"}],\"schema\":\"ballast/probes/1\"}",
      "72e6e7ef3ead158c58d1abd240cc280af974d762168f944f47d855287727ffe8",
      "" },
    { "but with escapes", "p.txt",
      "a\\nb\\tc\\\\n\n",
      NULL, true,
      "{\"probes\":[{\"id\":\"8161dee7be21\",\"prompt\":\"a\\nb\\t"
      "c\\\\n\"}],\"schema\":\"ballast/probes/1\"}",
      "bc2eebcab2abfe7f80a8496634a44dc5f959417a29de8c6ad356d8207c60eb2d",
      "" },
    { "characters of all lengths", "p.txt",
      "\303\251\n\344\270\255\n\360\237\230\200\n\177\342\200\250\n"
      "",
      NULL, false,
      "{\"probes\":[{\"id\":\"4a99557e4033\",\"prompt\":\"\303\251"
      "\"},{\"id\":\"a567bdaa1136\",\"prompt\":\"\344\270\255\"},{"
      "\"id\":\"f0443a342c5e\",\"prompt\":\"\360\237\230\200\"},{\""
      "id\":\"1be08083dd90\",\"prompt\":\"\177\342\200\250\"}],\"s"
      "chema\":\"ballast/probes/1\"}",
      "3cb24ab84511791853350fdee73a1d6a3d51323f14d298b895a31a9f8980c610",
      "" },
    { "control characters", "p.txt",
      "a\001\037b\010\014\n",
      NULL, false,
      "{\"probes\":[{\"id\":\"a9d49a564063\",\"prompt\":\"a\\u0001"
      "\\u001fb\\b\\f\"}],\"schema\":\"ballast/probes/1\"}",
      "78007b1d977dd3839bd6a25f958cc8e0db2711e57d6141b59b038ad66e58af79",
      "" },
    { "a text that begins like an object", "p.txt",
      "{name}, say hello\n",
      NULL, false,
      "{\"probes\":[{\"id\":\"3e5d2cfab72a\",\"prompt\":\"{name}, "
      "say hello\"}],\"schema\":\"ballast/probes/1\"}",
      "5eccc28993735c7ab35baa363125ee98f687dac5f0e38e2a4565369012d54881",
      "" },
    { "text, whatever it is called", "p",
      "# heading\n// note\n",
      NULL, false,
      "{\"probes\":[{\"id\":\"b9e29e9c700f\",\"prompt\":\"# headin"
      "g\"},{\"id\":\"19cfbd337dd0\",\"prompt\":\"// note\"}],\"sc"
      "hema\":\"ballast/probes/1\"}",
      "8258b50dc815204e67385ec9bd13ff62fa4e0df27064ff184b8d63286247b4c4",
      "" },
    { "prompts", "p.jsonl",
      "{\"prompt\": \"a\"}\n{\"id\": \"x\", \"prompt\": \"b\"}\n",
      NULL, false,
      "{\"probes\":[{\"id\":\"ca978112ca1b\",\"prompt\":\"a\"},{\""
      "id\":\"x\",\"prompt\":\"b\"}],\"schema\":\"ballast/probes/1"
      "\"}",
      "33f3e035b2dccc99066311a49f0d9b65f18e53d3b26af780afe971a3185514af",
      "" },
    { "objects in a file of any name", "p.txt",
      "\n { \"prompt\" : \"a\" } \r\n",
      NULL, false,
      "{\"probes\":[{\"id\":\"ca978112ca1b\",\"prompt\":\"a\"}],\""
      "schema\":\"ballast/probes/1\"}",
      "9c0b5fac48cd7dc826b775028c474de751f1e8c814bb45ce170807cd94f939ec",
      "" },
    { "all keys", "p.jsonl",
      "{\"tags\": [\"qa\"], \"stop\": [\"\\n\", \".\"], \"max_toke"
      "ns\": 65536, \"choices\": [\"A\", \"B\"], \"reference\": \""
      "A\", \"prompt\": \"q\\\"\\\\/\\u0001\", \"id\": \"p 1\"}\n",
      NULL, false,
      "{\"probes\":[{\"choices\":[\"A\",\"B\"],\"id\":\"p 1\",\"ma"
      "x_tokens\":65536,\"prompt\":\"q\\\"\\\\/\\u0001\",\"referen"
      "ces\":[\"A\"],\"stop\":[\"\\n\",\".\"]}],\"schema\":\"balla"
      "st/probes/1\"}",
      "2b9aa127cbd235ab4962dccdeab1dc05636d0eb65fa26828777aad5116193d66",
      "" },
    { "lists and texts", "p.jsonl",
      "{\"prompt\": \"a\", \"references\": [\"x\", \"y\"], \"stop\""
      ": \".\", \"max_tokens\": 1}\n{\"prompt\": \"b\", \"referenc"
      "e\": [\"z\"], \"id\": 7}\n",
      NULL, false,
      "{\"probes\":[{\"id\":\"ca978112ca1b\",\"max_tokens\":1,\"pr"
      "ompt\":\"a\",\"references\":[\"x\",\"y\"],\"stop\":[\".\"]}"
      ",{\"id\":\"7\",\"prompt\":\"b\",\"references\":[\"z\"]}],\""
      "schema\":\"ballast/probes/1\"}",
      "029ae55dbc72a41ed8daac86a00aed050e7d7121a2f88e8ed3a35bb3a9efd477",
      "" },
    { "null and nothing is none", "p.jsonl",
      "{\"prompt\": \"a\", \"messages\": null, \"id\": null, \"ref"
      "erence\": null, \"choices\": [], \"stop\": [], \"max_tokens"
      "\": null}\n",
      NULL, false,
      "{\"probes\":[{\"id\":\"ca978112ca1b\",\"prompt\":\"a\"}],\""
      "schema\":\"ballast/probes/1\"}",
      "9c0b5fac48cd7dc826b775028c474de751f1e8c814bb45ce170807cd94f939ec",
      "" },
    { "a chat", "p.jsonl",
      "{\"messages\": [{\"role\": \"system\", \"content\": \"be br"
      "ief\"}, {\"role\": \"user\", \"content\": \"h\\u00e4h?\"}]}"
      "\n",
      NULL, false,
      "{\"probes\":[{\"id\":\"02128a5ca016\",\"messages\":[{\"cont"
      "ent\":\"be brief\",\"role\":\"system\"},{\"content\":\"h\303"
      "\244h?\",\"role\":\"user\"}]}],\"schema\":\"ballast/probes/"
      "1\"}",
      "55755771a1fa55c460d96cada089bccc371db47c1a5d7a84df02967880fe9718",
      "" },
    { "a chat with keys that are not asked with", "p.jsonl",
      "{\"messages\": [{\"role\": \"user\", \"content\": \"\", \"n"
      "ame\": \"me\"}], \"n\": 3, \"seed\": 1}\n{\"prompt\": \"p\""
      ", \"n\": 1}\n",
      NULL, false,
      "{\"probes\":[{\"id\":\"5f4cecb53c4f\",\"messages\":[{\"cont"
      "ent\":\"\",\"role\":\"user\"}]},{\"id\":\"148de9c5a7a4\",\""
      "prompt\":\"p\"}],\"schema\":\"ballast/probes/1\"}",
      "c1bda64173e502edd2d654424606e59543df70740dad919d7f513d40720a94b4",
      "messages:name\nn\nseed" },
    { "names that are no sight", "p.jsonl",
      "{\"prompt\": \"a\", \"x\\n\\u001b[1m\": 1}\n",
      NULL, false,
      "{\"probes\":[{\"id\":\"ca978112ca1b\",\"prompt\":\"a\"}],\""
      "schema\":\"ballast/probes/1\"}",
      "9c0b5fac48cd7dc826b775028c474de751f1e8c814bb45ce170807cd94f939ec",
      "x\\x0a\\x1b[1m" },
    { "the same prompt under two ids", "p.jsonl",
      "{\"prompt\": \"a\", \"id\": \"1\"}\n{\"prompt\": \"a\", \"i"
      "d\": \"2\"}\n{\"prompt\": \"a\"}\n",
      NULL, false,
      "{\"probes\":[{\"id\":\"1\",\"prompt\":\"a\"},{\"id\":\"2\","
      "\"prompt\":\"a\"},{\"id\":\"ca978112ca1b\",\"prompt\":\"a\""
      "}],\"schema\":\"ballast/probes/1\"}",
      "2989b13081b8e9a7dc2f13dc5032958e661f4f40949232699c8de9ef9208b7f3",
      "" },
    { "a prompt that looks like a chat", "p.jsonl",
      "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], "
      "\"id\": \"c\"}\n{\"prompt\": \"[{\\\"content\\\":\\\"a\\\","
      "\\\"role\\\":\\\"user\\\"}]\"}\n",
      NULL, false,
      "{\"probes\":[{\"id\":\"c\",\"messages\":[{\"content\":\"a\""
      ",\"role\":\"user\"}]},{\"id\":\"5168bd634e48\",\"prompt\":\""
      "[{\\\"content\\\":\\\"a\\\",\\\"role\\\":\\\"user\\\"}]\"}]"
      ",\"schema\":\"ballast/probes/1\"}",
      "523d344c9c3f2896d9bd62a8048269887bf72479c720fd23854b0f2bbfbb3501",
      "" },
    { "surrogates are one character", "p.jsonl",
      "{\"prompt\":\"\\ud83d\\ude00\"}",
      NULL, false,
      "{\"probes\":[{\"id\":\"f0443a342c5e\",\"prompt\":\"\360\237"
      "\230\200\"}],\"schema\":\"ballast/probes/1\"}",
      "dcab0c09b97a4ddb12cdc1fae1963226990909e128e8a797fb1e5c2a87876332",
      "" },
    { "variables", "p.jsonl",
      "{\"vars\": {\"prompt\": \"a\"}}\n{\"vars\": {\"prompt\": \""
      "b {{x}}\"}}\n",
      NULL, false,
      "{\"probes\":[{\"id\":\"ca978112ca1b\",\"prompt\":\"a\"},{\""
      "id\":\"7ebe1da2124f\",\"prompt\":\"b {{x}}\"}],\"schema\":\""
      "ballast/probes/1\"}",
      "cea65b2d4d3a1085de51fef641a259365ad52452f84da6af62bf4808b4efddb2",
      "" },
    { "variables in a pattern", "p.jsonl",
      "{\"vars\": {\"q\": \"2+2\", \"n\": 3, \"half\": 0.5, \"sure"
      "\": true, \"note\": \"x\"}, \"assert\": [{\"type\": \"equal"
      "s\", \"value\": 4}, {\"type\": \"equals\", \"value\": \" {{"
      " n }} \"}, {\"type\": \"contains\", \"value\": \"4\"}, {\"t"
      "ype\": \"equals\", \"value\": {\"a\": 1}}], \"description\""
      ": \"d\"}\n",
      "Q: {{q}} {{ n }} {{half}} {{\tsure }}\nA:", false,
      "{\"probes\":[{\"id\":\"26a731df4438\",\"prompt\":\"Q: 2+2 3"
      " 0.5 true\\nA:\",\"references\":[\"4\",\"3\"]}],\"schema\":"
      "\"ballast/probes/1\"}",
      "2fbb6052628164f07b261029b2dd6f3d61fe5f45f5a1a4f21e4b5dcbca11077b",
      "assert:contains\nassert:equals\ndescription\nvars:note" },
    { "no asserts", "p.jsonl",
      "{\"vars\": {\"q\": \"a\"}, \"assert\": null, \"threshold\":"
      " 0.5}\n{\"vars\": {\"q\": \"b\", \"n\": [1]}}\n",
      "{{q}}?", false,
      "{\"probes\":[{\"id\":\"5289f1df3e14\",\"prompt\":\"a?\"},{\""
      "id\":\"b1d92f8c179e\",\"prompt\":\"b?\"}],\"schema\":\"ball"
      "ast/probes/1\"}",
      "3a26f44e3d3a7af5f2c47a3bffbdac8e2547972841652a1362a9a548b6e5980a",
      "threshold\nvars:n" },
    { "columns", "p.csv",
      "prompt,__expected,__prefix,__suffix,__description,__metadat"
      "a:tag\r\na,x,<,>,d,t\r\nb,,,,,\r\n",
      NULL, false,
      "{\"probes\":[{\"id\":\"bee81bf20092\",\"prompt\":\"<a>\",\""
      "references\":[\"x\"]},{\"id\":\"3e23e8160039\",\"prompt\":\""
      "b\"}],\"schema\":\"ballast/probes/1\"}",
      "3c0f1afe9edb148e87440cbbacbbff232e9e52480a78d5f2b1628510f2b4cdd3",
      "__description\n__metadata:tag" },
    { "quotes of RFC 4180", "p.csv",
      "\357\273\277\"prompt\",n\n\"a, \"\"b\"\"\r\nc\n\",1\n\n\"\""
      ",2\n",
      "{{prompt}} {{n}}", false,
      "{\"probes\":[{\"id\":\"416447c2d784\",\"prompt\":\"a, \\\"b"
      "\\\"\\r\\nc\\n 1\"},{\"id\":\"eef2eae2699d\",\"prompt\":\" "
      "2\"}],\"schema\":\"ballast/probes/1\"}",
      "6a7fe7d2e9fb07d1ec56c965eddd71566ac78edcdd3971fb7f5b44a2ead927f5",
      "" },
    { "what is expected", "p.csv",
      "q,__expected,__expected1,__expected2,__expected10,context,_"
      "_metric\n1,equals: x,y,\"contains-any: a,b\",not-equals: z,"
      "c,m\n2,is-json,similar(0.8): x,llm-rubric:is kind,file://a."
      "py,c,m\n3,Answer: x,\"  \",equals,not-contains(0.1):b,c,m\n"
      "4,{{q}}!,equals:{{ q }},grade: x,python: y,c,m\n",
      "{{q}}", false,
      "{\"probes\":[{\"id\":\"6b86b273ff34\",\"prompt\":\"1\",\"re"
      "ferences\":[\"x\",\"y\"]},{\"id\":\"d4735e3a265e\",\"prompt"
      "\":\"2\"},{\"id\":\"4e07408562be\",\"prompt\":\"3\",\"refer"
      "ences\":[\"Answer: x\"]},{\"id\":\"4b227777d4dd\",\"prompt\""
      ":\"4\",\"references\":[\"4!\",\"4\"]}],\"schema\":\"ballast"
      "/probes/1\"}",
      "65ede40d5af4b83707212145e6b4e90706523302cc9345602e3ce40da9ad15a6",
      "assert:contains-any\nassert:not-equals\nassert:is-json\nass"
      "ert:similar\nassert:llm-rubric\nassert:file\nassert:equals\n"
      "assert:not-contains\nassert:grade\nassert:python\nvars:cont"
      "ext\n__metric" },
    { "a column with a blank", "p.csv",
      " first name ,x\nA,1\n",
      "{{ first name }}!", false,
      "{\"probes\":[{\"id\":\"8982b44a300b\",\"prompt\":\"A!\"}],\""
      "schema\":\"ballast/probes/1\"}",
      "92513f72324919d86da995d7268d641758279470a761c27dcaa2aaa94f3d6f63",
      "vars:x" },
    { "samples of generation", "samples_t.jsonl",
      "{\"doc\": {\"q\": 1}, \"resps\": [[\"x\"]], \"filtered_resp"
      "s\": [\"x\"], \"filter\": \"none\", \"metrics\": [\"acc\"],"
      " \"doc_hash\": \"0\", \"prompt_hash\": \"1\", \"target_hash"
      "\": \"2\", \"acc\": 1.0, \"doc_id\": 0, \"target\": \" 42 \""
      ", \"arguments\": [[\"Q: a\", {\"until\": [\"\\n\\n\", \"Q:\""
      "], \"max_gen_toks\": 256, \"do_sample\": false, \"temperatu"
      "re\": 0.0}]]}\n{\"doc\": {\"q\": 1}, \"resps\": [[\"x\"]], "
      "\"filtered_resps\": [\"x\"], \"filter\": \"strict\", \"metr"
      "ics\": [\"acc\"], \"doc_hash\": \"0\", \"prompt_hash\": \"1"
      "\", \"target_hash\": \"2\", \"acc\": 1.0, \"doc_id\": 0, \""
      "target\": \" 42 \", \"arguments\": [[\"Q: a\", {\"until\": "
      "[\"\\n\\n\", \"Q:\"], \"max_gen_toks\": 256, \"do_sample\":"
      " false, \"temperature\": 0.0}]]}\n{\"doc\": {\"q\": 1}, \"r"
      "esps\": [[\"x\"]], \"filtered_resps\": [\"x\"], \"filter\":"
      " \"none\", \"metrics\": [\"acc\"], \"doc_hash\": \"0\", \"p"
      "rompt_hash\": \"1\", \"target_hash\": \"2\", \"acc\": 1.0, "
      "\"doc_id\": 1, \"target\": 42, \"arguments\": {\"gen_args_0"
      "\": {\"arg_0\": \"Q: b\", \"arg_1\": {\"until\": \"\\n\"}}}"
      "}\n{\"doc\": {\"q\": 1}, \"resps\": [[\"x\"]], \"filtered_r"
      "esps\": [\"x\"], \"filter\": \"none\", \"metrics\": [\"acc\""
      "], \"doc_hash\": \"0\", \"prompt_hash\": \"1\", \"target_ha"
      "sh\": \"2\", \"acc\": 1.0, \"doc_id\": \"x\", \"target\": ["
      "\"p\", \"q\"], \"arguments\": [[\"Q: c\"]]}\n{\"doc\": {\"q"
      "\": 1}, \"resps\": [[\"x\"]], \"filtered_resps\": [\"x\"], "
      "\"filter\": \"none\", \"metrics\": [\"acc\"], \"doc_hash\":"
      " \"0\", \"prompt_hash\": \"1\", \"target_hash\": \"2\", \"a"
      "cc\": 1.0, \"doc_id\": 3, \"target\": 0.5, \"arguments\": ["
      "[\"Q: d\", null]]}\n{\"doc\": {\"q\": 1}, \"resps\": [[\"x\""
      "]], \"filtered_resps\": [\"x\"], \"filter\": \"none\", \"me"
      "trics\": [\"acc\"], \"doc_hash\": \"0\", \"prompt_hash\": \""
      "1\", \"target_hash\": \"2\", \"acc\": 1.0, \"doc_id\": 4, \""
      "target\": \"['a', 'b']\", \"arguments\": [[\"Q: e\", {}]]}\n"
      "{\"doc\": {\"q\": 1}, \"resps\": [[\"x\"]], \"filtered_resp"
      "s\": [\"x\"], \"filter\": \"none\", \"metrics\": [\"acc\"],"
      " \"doc_hash\": \"0\", \"prompt_hash\": \"1\", \"target_hash"
      "\": \"2\", \"acc\": 1.0, \"doc_id\": 5, \"target\": null, \""
      "arguments\": [[\"Q: f\", {\"until\": []}]]}\n",
      NULL, false,
      "{\"probes\":[{\"id\":\"0\",\"max_tokens\":256,\"prompt\":\""
      "Q: a\",\"references\":[\"42\"],\"stop\":[\"\\n\\n\",\"Q:\"]"
      "},{\"id\":\"1\",\"prompt\":\"Q: b\",\"references\":[\"42\"]"
      ",\"stop\":[\"\\n\"]},{\"id\":\"x\",\"prompt\":\"Q: c\",\"re"
      "ferences\":[\"p\",\"q\"]},{\"id\":\"3\",\"prompt\":\"Q: d\""
      ",\"references\":[\"0.5\"]},{\"id\":\"4\",\"prompt\":\"Q: e\""
      "},{\"id\":\"5\",\"prompt\":\"Q: f\"}],\"schema\":\"ballast/"
      "probes/1\"}",
      "2402c838fa0e4e1378f75d248c43fe3d62b69219cc2b40e5cbb0a4e7c87e085a",
      "arguments:do_sample\narguments:temperature\ntarget" },
    { "samples of multiple choice", "samples_t.jsonl",
      "{\"doc\": {\"q\": 1}, \"resps\": [[\"x\"]], \"filtered_resp"
      "s\": [\"x\"], \"filter\": \"none\", \"metrics\": [\"acc\"],"
      " \"doc_hash\": \"0\", \"prompt_hash\": \"1\", \"target_hash"
      "\": \"2\", \"acc\": 1.0, \"doc_id\": 0, \"target\": 1, \"ar"
      "guments\": [[\"Q: a\\nAnswer:\", \" yes\"], [\"Q: a\\nAnswe"
      "r:\", \" no\"]]}\n{\"doc\": {\"q\": 1}, \"resps\": [[\"x\"]"
      "], \"filtered_resps\": [\"x\"], \"filter\": \"none\", \"met"
      "rics\": [\"acc\"], \"doc_hash\": \"0\", \"prompt_hash\": \""
      "1\", \"target_hash\": \"2\", \"acc\": 1.0, \"doc_id\": 1, \""
      "target\": \"0\", \"arguments\": {\"gen_args_0\": {\"arg_0\""
      ": \"Q: a\\nAnswer:\", \"arg_1\": \" yes\"}, \"gen_args_1\":"
      " {\"arg_0\": \"Q: a\\nAnswer:\", \"arg_1\": \" no\"}}}\n{\""
      "doc\": {\"q\": 1}, \"resps\": [[\"x\"]], \"filtered_resps\""
      ": [\"x\"], \"filter\": \"none\", \"metrics\": [\"acc\"], \""
      "doc_hash\": \"0\", \"prompt_hash\": \"1\", \"target_hash\":"
      " \"2\", \"acc\": 1.0, \"doc_id\": 2, \"target\": \" no\", \""
      "arguments\": [[\"Q: a\\nAnswer:\", \" yes\"], [\"Q: a\\nAns"
      "wer:\", \" no\"], [\"\", \" yes\"], [\"\", \" no\"]]}\n{\"d"
      "oc\": {\"q\": 1}, \"resps\": [[\"x\"]], \"filtered_resps\":"
      " [\"x\"], \"filter\": \"none\", \"metrics\": [\"acc\"], \"d"
      "oc_hash\": \"0\", \"prompt_hash\": \"1\", \"target_hash\": "
      "\"2\", \"acc\": 1.0, \"doc_id\": 3, \"target\": \"maybe\", "
      "\"arguments\": [[\"Q: a\\nAnswer:\", \" yes\"], [\"Q: a\\nA"
      "nswer:\", \" no\"]]}\n{\"doc\": {\"q\": 1}, \"resps\": [[\""
      "x\"]], \"filtered_resps\": [\"x\"], \"filter\": \"none\", \""
      "metrics\": [\"acc\"], \"doc_hash\": \"0\", \"prompt_hash\":"
      " \"1\", \"target_hash\": \"2\", \"acc\": 1.0, \"doc_id\": 4"
      ", \"target\": \"1\", \"arguments\": [[\"Q\", \" 1\"], [\"Q\""
      ", \" 2\"]]}\n{\"doc\": {\"q\": 1}, \"resps\": [[\"x\"]], \""
      "filtered_resps\": [\"x\"], \"filter\": \"none\", \"metrics\""
      ": [\"acc\"], \"doc_hash\": \"0\", \"prompt_hash\": \"1\", \""
      "target_hash\": \"2\", \"acc\": 1.0, \"doc_id\": 5, \"target"
      "\": \"2\", \"arguments\": [[\"Q\", \" 0\"], [\"Q\", \" 1\"]"
      ", [\"Q\", \" 2\"]]}\n{\"doc\": {\"q\": 1}, \"resps\": [[\"x"
      "\"]], \"filtered_resps\": [\"x\"], \"filter\": \"none\", \""
      "metrics\": [\"acc\"], \"doc_hash\": \"0\", \"prompt_hash\":"
      " \"1\", \"target_hash\": \"2\", \"acc\": 1.0, \"doc_id\": 6"
      ", \"target\": 7, \"arguments\": [[\"Q: a\\nAnswer:\", \" ye"
      "s\"], [\"Q: a\\nAnswer:\", \" no\"]]}\n{\"doc\": {\"q\": 1}"
      ", \"resps\": [[\"x\"]], \"filtered_resps\": [\"x\"], \"filt"
      "er\": \"none\", \"metrics\": [\"acc\"], \"doc_hash\": \"0\""
      ", \"prompt_hash\": \"1\", \"target_hash\": \"2\", \"acc\": "
      "1.0, \"doc_id\": 7, \"target\": \" Paris\", \"arguments\": "
      "[[\"The capital is\", \" Paris\"]]}\n",
      NULL, false,
      "{\"probes\":[{\"choices\":[\"yes\",\"no\"],\"id\":\"0\",\"p"
      "rompt\":\"Q: a\\nAnswer:\",\"references\":[\"no\"]},{\"choi"
      "ces\":[\"yes\",\"no\"],\"id\":\"1\",\"prompt\":\"Q: a\\nAns"
      "wer:\",\"references\":[\"yes\"]},{\"choices\":[\"yes\",\"no"
      "\"],\"id\":\"2\",\"prompt\":\"Q: a\\nAnswer:\",\"references"
      "\":[\"no\"]},{\"choices\":[\"yes\",\"no\"],\"id\":\"3\",\"p"
      "rompt\":\"Q: a\\nAnswer:\"},{\"choices\":[\"1\",\"2\"],\"id"
      "\":\"4\",\"prompt\":\"Q\"},{\"choices\":[\"0\",\"1\",\"2\"]"
      ",\"id\":\"5\",\"prompt\":\"Q\",\"references\":[\"2\"]},{\"c"
      "hoices\":[\"yes\",\"no\"],\"id\":\"6\",\"prompt\":\"Q: a\\n"
      "Answer:\"},{\"id\":\"7\",\"prompt\":\"The capital is\",\"re"
      "ferences\":[\"Paris\"]}],\"schema\":\"ballast/probes/1\"}",
      "bc43e6d43f0f6657e0c5fe2978c9e66555757503c1c4d58f18cf4f0ffa1bc8c9",
      "target" },
};
/* clang-format on */

#endif
