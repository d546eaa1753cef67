import { openMemoryStore } from "../../../src/runtime/store/sqlite/open.ts";
import { describeStore } from "./contract.ts";

describeStore("memory", async () => openMemoryStore());
