// Makes docs/agent.svg anew: what a user sees who lets Claude Code work on a project. It needs root, and the coding agents that
// scripts/set-up.mjs --test installs. test/agents makes it too, and compares.

import { writeFileSync } from "node:fs";
import { PICTURE, recordAgent } from "../test/agents/recording.ts";

writeFileSync(PICTURE, (await recordAgent()).picture);
