"""Bridges to frameworks: one in each file, each behind an extra of the framework's name, thin where they can be.

    clients      SDK clients: what `worldline.wrap` gives
    pydantic_ai  a capability: tools are served and gated, model calls that no HTTP seam hears are recorded
    langgraph    a checkpointer: the agent's state goes into the recording
    langchain    a callback handler: hears, and cannot serve

A framework is imported by its own bridge and by nothing else. `tools` says what a framework's tools do to the world.
"""
