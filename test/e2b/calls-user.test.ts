import { testsAsUser } from "../support/as-user.ts";

await testsAsUser("test/e2b/calls.user.ts");
