import { testsAsUser } from "../../support/as-user.ts";

await testsAsUser("test/conformance/runtime/bwrap.user.ts");
