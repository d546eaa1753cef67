"""A Python in a sandbox that keeps its variables: `worker` runs there, `interpreter` talks to it from here."""

from __future__ import annotations

from agentfense.integrations._interpreter.interpreter import Answer, Interpreter, InterpreterEnded

__all__ = ["Answer", "Interpreter", "InterpreterEnded"]
