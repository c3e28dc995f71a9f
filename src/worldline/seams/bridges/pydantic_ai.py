"""pydantic-ai: `Agent(..., capabilities=[Worldline()])`. The extra `pydantic-ai` brings the framework.

Tools cross the door where the framework runs them (`wrap_tool_execute`): served on a replay, gated on a branch. Model
calls are recorded as the bytes that went over the wire, by whichever HTTP seam hears them: the run's proxy where the
model talks to it, else a twin around the client of its SDK. A model that has no such client is recorded here, as the
framework's own messages. Each model call is recorded once. Without a run everything runs as if this was not there.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import msgspec
from pydantic import TypeAdapter
from pydantic_ai import exceptions
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    ToolCallPart,
    ToolReturn,
    tool_return_content_ta,
)
from pydantic_ai.models import CompletedStreamedResponse, Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_core import to_jsonable_python

from worldline.engine import boundary as doors
from worldline.engine.boundary import Call, Live, Served, inside
from worldline.engine.content import Content
from worldline.engine.failure import describe, revive
from worldline.engine.threads import in_thread
from worldline.errors import EffectRefused, UsageError, ValueRefused
from worldline.model import values
from worldline.model.dialects import pydantic_ai
from worldline.seams.active import ActiveRun, current
from worldline.seams.bridges.clients import wrap
from worldline.seams.bridges.tools import ToolEffect, Tools
from worldline.seams.lanes import in_lane, lane
from worldline.seams.taken import model_taken, tool_taken

_KIND = "pydantic_ai"  # the field that marks a tool's result which is more than plain data
_VOLATILE = ("timestamp", "run_id", "conversation_id", "history_digest", "failed_attempts")  # differ in each run
_TOOL_RETURN: TypeAdapter[Any] = TypeAdapter(ToolReturn)


@dataclass
class Worldline(AbstractCapability[Any]):
    """Records what an agent does in the run that is open; serves and gates its tools.

    `tools` says what tools do to the world, by name: `pure`, `idempotent`, `side_effecting` or a `ToolEffect`. A tool
    whose function is under `@worldline.tool` says so itself. What is said nowhere is side-effecting.
    """

    tools: Mapping[str, str | ToolEffect] = field(default_factory=dict)
    _: KW_ONLY
    _effects: Tools = field(init=False, repr=False)
    _twins: dict[int, tuple[Any, Any, Any]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._effects = Tools(self.tools)

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> Any:
        """An agent that runs within a tool of another one has a lane of its own."""
        nested = inside.get() is not None and current() is not None
        with in_lane(f"{lane()}/{_name(ctx)}") if nested else nullcontext():
            return await handler()

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        """Let a tool's run cross the door. What the gate refuses, the model is told as the tool's failure."""
        run = current()
        if run is None:
            return await handler(args)
        function = _function(ctx, call.tool_name)
        crossing = self._effects.call(call.tool_name, _jsonable(args), function)
        told: list[Exception] = []  # the framework's own form of a failure, whose counts are made already
        ran = False

        async def execute() -> Any:
            nonlocal ran
            ran = True
            try:
                with tool_taken(call.tool_name, function):
                    return _plain(await handler(args))
            except (exceptions.ToolRetryError, exceptions.ToolFailedError) as error:
                if isinstance(error.__cause__, exceptions.ModelRetry | exceptions.ToolFailed):
                    told.append(error)
                    raise error.__cause__ from None
                raise

        scope = {**getattr(function, "__globals__", {}), **vars(exceptions)}
        try:
            result = await doors.acall(run.boundary, crossing, execute, scope)
        except EffectRefused as refused:
            raise exceptions.ToolFailed(str(refused)) from refused
        except (exceptions.ModelRetry, exceptions.ToolFailed):
            if told:
                raise told[0] from told[0].__cause__
            raise
        if not ran:
            ctx.usage.tool_calls += 1  # as the framework counts what it runs
        return _restored(result)

    def get_wrapper_model(self, model: Model) -> Model | None:
        """The model as it is heard: through a twin of its SDK's client, or recorded here."""
        run = current()
        if run is None:
            return None
        heard = self._heard_in(run, model)
        return None if heard is model else _Attempt(heard)

    def _heard_in(self, run: ActiveRun, model: Model) -> Model:
        if isinstance(model, FallbackModel):
            several = copy.copy(model)
            several.models = [self._heard_in(run, each) for each in model.models]
            return several
        if isinstance(model, WrapperModel):
            outer = copy.copy(model)
            outer.wrapped = self._heard_in(run, model.wrapped)
            return outer
        if str(model.base_url or "").startswith(run.url):
            return model  # the run's proxy hears it
        return self._through_twin(model) or RecordedModel(run, model)

    def _through_twin(self, model: Model) -> Model | None:
        """The model with a twin around its SDK's client; None where it has no client that can be wrapped."""
        client = getattr(model, "client", None)
        inner = getattr(client, "_client", None)  # which a provider replaces when it moves to another event loop
        if client is None or model.provider is None:
            return None
        client_before, inner_before, twin = self._twins.get(id(client), (None, None, None))
        if client is not client_before or inner is not inner_before:
            try:
                twin = wrap(client)
            except UsageError:
                return None
            self._twins[id(client)] = client, inner, twin
        provider, own = copy.copy(model.provider), copy.copy(model)
        vars(provider)["_client"], vars(own)["_provider"] = twin, provider
        return own if getattr(own, "client", None) is twin else None


class _Attempt(WrapperModel):
    """A model for one attempt: the framework asks for a wrapper of its own, which enters and leaves nothing."""

    def __init__(self, wrapped: Model) -> None:
        super().__init__(wrapped)

    async def __aenter__(self) -> _Attempt:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None


class RecordedModel(WrapperModel):
    """A model whose calls cross the door as the framework's own messages, for want of bytes that could be heard."""

    def __init__(self, run: ActiveRun, wrapped: Model) -> None:
        super().__init__(wrapped)
        self._run = run

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """The recorded response, or the model's."""
        answer = await self._begin(messages, model_settings, model_request_parameters)
        if isinstance(answer, Served):
            return await _served(answer)
        mark = inside.set(answer.call)
        try:
            with model_taken():
                response = await self.wrapped.request(messages, model_settings, model_request_parameters)
        except BaseException as error:
            await _broken(answer, error)
            raise
        finally:
            inside.reset(mark)
        await in_thread(_finish, answer, response)
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """The same for a stream: it is handed on as it comes, and recorded as what it came to."""
        answer = await self._begin(messages, model_settings, model_request_parameters)
        if isinstance(answer, Served):
            response = await _served(answer)
            yield CompletedStreamedResponse(
                response, model_request_parameters=model_request_parameters, replay_events=True
            )
            return
        try:
            async with AsyncExitStack() as stack:
                with model_taken():  # what asks meanwhile, while the stream is read, is no part of this call
                    stream = await stack.enter_async_context(
                        self.wrapped.request_stream(messages, model_settings, model_request_parameters, run_context)
                    )
                yield stream
        except BaseException as error:
            await _broken(answer, error)
            raise
        await in_thread(_finish, answer, stream.get())

    async def _begin(
        self, messages: list[ModelMessage], settings: ModelSettings | None, parameters: ModelRequestParameters
    ) -> Served | Live:
        body = {
            "model": self.wrapped.model_id,
            "settings": to_jsonable_python(settings, fallback=repr),
            "tools": [
                {"name": t.name, "description": t.description, "parameters": t.parameters_json_schema}
                for t in [*parameters.function_tools, *parameters.output_tools]
            ],
            "messages": _lasting(ModelMessagesTypeAdapter.dump_python(messages, mode="json")),
        }
        call = Call(
            kind="decision",
            name=pydantic_ai.ROUTE,
            inputs=Content.of({"model": self.wrapped.model_id}),
            body=msgspec.json.encode(body),
            lane=lane(),
            parent=inside.get(),
        )
        return await in_thread(self._run.boundary.begin, call)


async def _served(answer: Served) -> ModelResponse:
    if answer.never_ended:
        raise doors.RecordEnds(answer.never_ended)
    failure = answer.data.get("error")
    body = b"".join(piece for piece, _ in answer.pieces())
    await doors.its_turn(answer)
    if failure is not None:
        raise revive(failure, vars(exceptions))
    (response,) = ModelMessagesTypeAdapter.validate_json(b"[" + body + b"]")
    assert isinstance(response, ModelResponse), "nothing else is recorded as an answer"
    return response


async def _broken(live: Live, error: BaseException) -> None:
    if isinstance(error, Exception):
        await in_thread(live.fail, describe(error))
    else:
        live.abandon(f"interrupted by {type(error).__name__}")


def _finish(live: Live, response: ModelResponse) -> None:
    (value,) = ModelMessagesTypeAdapter.dump_python([response], mode="json")
    live.encoded("identity")
    live.chunk(msgspec.json.encode(value))
    live.finish({"complete": True})


def _lasting(value: Any) -> Any:
    """Messages without what each run draws anew."""
    if isinstance(value, list):
        return [_lasting(item) for item in value]
    if isinstance(value, dict):
        return {key: _lasting(item) for key, item in value.items() if key not in _VOLATILE}
    return value


def _name(ctx: RunContext[Any]) -> str:
    return (ctx.agent.name if ctx.agent is not None else None) or "agent"


def _function(ctx: RunContext[Any], name: str) -> Any:
    """The function that a tool is, where it is one: it may say itself what it does to the world."""
    tools = ctx.tool_manager.tools if ctx.tool_manager is not None else None
    tool: Any = (tools or {}).get(name)
    while hasattr(tool, "source_tool"):  # of toolsets that are made of others
        tool = tool.source_tool
    return getattr(getattr(getattr(tool, "call_func", None), "__self__", None), "function", None)


def _plain(result: Any) -> Any:
    """A tool's result as a record can carry it; what the framework makes a part of a message comes back as that."""
    if isinstance(result, ToolReturn):
        return {_KIND: "tool-return", "value": _TOOL_RETURN.dump_python(result, mode="json")}
    plain = _jsonable(result)
    return result if plain is result else {_KIND: "content", "value": plain}


def _jsonable(value: Any) -> Any:
    """A value as it is where a record can carry it, else as the framework's JSON has it."""
    try:
        values.plain(value)
    except ValueRefused:
        return to_jsonable_python(value, bytes_mode="base64")
    except values.TooDeep:
        return value
    return value


def _restored(result: Any) -> Any:
    """Undo `_plain`, as far as it makes a difference to the model."""
    if not (isinstance(result, dict) and result.keys() == {_KIND, "value"}):
        return result
    adapter = _TOOL_RETURN if result[_KIND] == "tool-return" else tool_return_content_ta
    return adapter.validate_python(result["value"])
