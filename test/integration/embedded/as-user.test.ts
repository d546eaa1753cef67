import { testsAsUser } from "../../support/as-user.ts";

await testsAsUser("test/integration/embedded/embedded.user.ts");
await testsAsUser("test/integration/embedded/lifetimes.user.ts");
