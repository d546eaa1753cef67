import { openMemoryStore } from "../../../src/runtime/store/sqlite/open-sqlite-store.ts";
import { describeStore } from "./contract.ts";

describeStore("memory", async () => openMemoryStore());
