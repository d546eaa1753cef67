import { openMemoryStore } from "../../src/runtime/store/sqlite/open-memory.ts";
import { describeStore } from "./contract.ts";

describeStore("memory", async () => openMemoryStore());
