// The search runs in a worker. Browsers refuse workers to a page that was opened as a file; there a hidden frame does the same.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(address) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.worker = this;
      this.loaded = new Promise((done) => (this.frame.onload = done));
      const answer = "self.postMessage = (data) => self.frameElement.worker.onmessage({ data })";
      this.frame.srcdoc = `<script>${answer}</script><script src="${address}"></script>`;
      document.body.append(this.frame);
    }
    postMessage(data) {
      this.loaded.then(() => this.frame.contentWindow.onmessage({ data }));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
