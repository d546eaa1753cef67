import type { Content, TestSite } from "./site.ts";

/** The site that the browsers are driven on. */
export const PAGES: Readonly<Record<string, Content>> = {
  "/article": `<!doctype html><title>On boxes</title><nav>Home | About</nav>
    <main><h1>On <em>boxes</em></h1><p>A box has <strong>walls</strong> and a <a href="/lid">lid</a>.</p>
    <ul><li>wood</li><li>steel<ol start="3"><li>thin</li><li>thick</li></ol></li></ul>
    <pre><code>open(box);\n  look();</code></pre><p>Say <code>close()</code>.</p>
    <blockquote><p>Shut it.</p></blockquote>
    <table><tr><th>Kind</th><th>Price</th></tr><tr><td>small|flat</td><td>3</td></tr></table>
    <p style="display: none">secret</p><script>document.title += "!"</script><img alt="a box" src="data:,"></main>`,
  "/form": `<!doctype html><title>Form</title><body id="body">
    <form onsubmit="event.preventDefault(); done.textContent = 'sent ' + who.value">
    <input id="who" value="nobody"><button id="send">Send</button></form><p id="done"></p>
    <button id="late" onclick="setTimeout(() => body.insertAdjacentHTML('beforeend', '<i id=came>came</i>'), 50)">
    later</button>
    <button id="loud" onclick="done.textContent = String(confirm('really?')) + prompt('what?')">ask</button>
    <a id="popup" href="/article" target="_blank">popup</a><div style="height: 5000px"></div><p id="end">the end</p>`,
  "/downloads": `<!doctype html><title>Downloads</title>
    <a id="blob" download="a.txt">blob</a><a id="file" href="/file">file</a>
    <a id="huge" href="/huge">huge</a><p id="quiet">nothing</p>
    <script>blob.href = URL.createObjectURL(new Blob(["from the page"]))</script>`,
  "/file": {
    headers: { "Content-Disposition": 'attachment; filename="../../evil"', "Content-Type": "x/y" },
    body: "a file",
  },
  "/huge": { headers: { "Content-Disposition": "attachment" }, body: Buffer.alloc(300_000) },
  "/gone": { status: 410, body: "gone" },
};

/** A page that tries everything there is to reach another place, and says when it has tried. */
export function restlessPage(elsewhere: string, udp: string): string {
  const host = new URL(elsewhere).host;
  const tries = (mark: string): string => `
    const settle = (promise) => promise.catch(() => {});
    const ws = (path) => new Promise((resolve) => {
      const socket = new WebSocket("ws://${host}/${mark}-" + path);
      socket.onopen = socket.onerror = resolve;
    });
    const tried = [settle(fetch("${elsewhere}/${mark}-fetch", { mode: "no-cors" })), settle(ws("ws"))];`;
  return `<!doctype html><title>restless</title><body><script>(async () => {
    ${tries("page")}
    const code = \`${tries("worker")} Promise.all(tried).then(() => postMessage("tried"))\`;
    const worker = new Worker(URL.createObjectURL(new Blob([code])));
    tried.push(new Promise((resolve) => { worker.onmessage = worker.onerror = resolve; }));
    for (const [name, attribute] of [["iframe", "src"], ["img", "src"], ["script", "src"], ["object", "data"]]) {
      const element = document.createElement(name);
      tried.push(new Promise((resolve) => { element.onload = element.onerror = resolve; }));
      element[attribute] = "${elsewhere}/" + name;
      document.body.append(element);
    }
    navigator.sendBeacon("${elsewhere}/beacon", "x");
    tried.push(settle(fetch("/to-elsewhere", { mode: "no-cors" })));
    tried.push(settle(navigator.serviceWorker?.register("/worker.js") ?? Promise.reject()));
    const peer = new RTCPeerConnection({ iceServers: [{ urls: "stun:${udp}" }] });
    peer.createDataChannel("x");
    tried.push(new Promise((resolve) => {
      peer.onicegatheringstatechange = () => peer.iceGatheringState === "complete" && resolve();
    }));
    await peer.setLocalDescription(await peer.createOffer());
    await Promise.all(tried);
    document.title = "tried";
    document.body.append(Object.assign(document.createElement("i"), { id: "tried", textContent: "tried" }));
  })()</script>`;
}

export function redirectTo(url: string): Content {
  return { status: 302, headers: { Location: url } };
}

export function contentOf(more: (path: string, site: TestSite) => Content | undefined) {
  return (path: string, site: TestSite): Content | undefined => PAGES[path] ?? more(path, site);
}
