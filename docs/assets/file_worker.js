/* Pages that are opened from a folder may not start workers. There, a hidden frame does the work of one, so that search
   needs neither a server nor a network. */
if (location.protocol === "file:") {
  let count = 0;
  self.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const name = `worker-${count++}`;
      this.onmessage = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = `<script>
        const load = (address) => new Promise((done, failed) => {
          const script = document.createElement("script");
          Object.assign(script, { src: address, onload: done, onerror: failed });
          document.head.appendChild(script);
        });
        self.importScripts = (...addresses) => addresses.reduce((before, next) => before.then(() => load(next)), Promise.resolve());
        self.receive = (data) => self.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) }));
        self.postMessage = (data) => parent.postMessage({ from: "${name}", data }, "*");
      <\/script><script src="${url}"><\/script>`;
      this.ready = new Promise((done) => this.frame.addEventListener("load", done));
      self.addEventListener("message", (event) => {
        if (event.source !== this.frame.contentWindow || !event.data || event.data.from !== name) return;
        const message = new MessageEvent("message", { data: event.data.data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      });
      document.documentElement.appendChild(this.frame);
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.receive(data));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
