"""Asks one question, says so, and waits to be ended (for as long as its recorder lives)."""

from __future__ import annotations

import json
import os
import time
import urllib.request

body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "one"}]}).encode()
headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
parent = os.getppid()
with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as response:
    answer = json.loads(response.read())
print("asked", answer["choices"][0]["message"]["content"], flush=True)
while os.getppid() == parent:
    time.sleep(0.05)
