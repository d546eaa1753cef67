import { type NetworkRule, parseNetworkRule } from "./policy.ts";

/** The hosts that registries document for their clients, and no others: what is listed here is where data can go. */
export const NETWORK_PRESETS: Readonly<Record<string, readonly NetworkRule[]>> = {
  npm: list("registry.npmjs.org:443", "registry.yarnpkg.com:443"),
  pypi: list("pypi.org:443", "files.pythonhosted.org:443"),
  github: list(
    "github.com:443,22",
    "api.github.com:443",
    "uploads.github.com:443",
    "codeload.github.com:443",
    "raw.githubusercontent.com:443",
    "objects.githubusercontent.com:443",
    "release-assets.githubusercontent.com:443",
    "github-cloud.githubusercontent.com:443",
    "github-cloud.s3.amazonaws.com:443",
  ),
  gitlab: list("gitlab.com:443,22", "registry.gitlab.com:443"),
  crates: list("crates.io:443", "index.crates.io:443", "static.crates.io:443"),
  go: list("proxy.golang.org:443", "sum.golang.org:443"),
  maven: list("repo.maven.apache.org:443", "repo1.maven.org:443"),
  rubygems: list("rubygems.org:443", "index.rubygems.org:443"),
  debian: list("deb.debian.org", "security.debian.org"),
  ubuntu: list("archive.ubuntu.com", "security.ubuntu.com", "ports.ubuntu.com"),
  alpine: list("dl-cdn.alpinelinux.org"),
};

function list(...lines: string[]): readonly NetworkRule[] {
  return lines.map(parseNetworkRule);
}
