import { testsAsUser } from "../../../support/as-user.ts";

await testsAsUser("test/conformance/security/res/bwrap.user.ts");
