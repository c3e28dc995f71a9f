"""Asks its model, and then other addresses past the recorder, whose silence it takes for an answer.

Arguments: URLs, each asked once.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request

body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]}).encode()
key = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
with urllib.request.urlopen(
    urllib.request.Request(f"{os.environ['OPENAI_BASE_URL']}/chat/completions", body, key)
) as answer:
    print(json.load(answer)["choices"][0]["message"]["content"])
for url in sys.argv[1:]:
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            print(answer.status)
    except (urllib.error.URLError, OSError) as error:
        print(type(error).__name__)
