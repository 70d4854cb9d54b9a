"use strict";
const SHOWN = 5;  // classes with a bar
const drop = document.getElementById("drop"), file = document.getElementById("file");
const answers = document.getElementById("answers");
const percent = p => (100 * p).toFixed(1) + "\u00a0%";

function show(card, selector, text) { card.querySelector(selector).textContent = text; }

function fail(card, line) {
  card.className = "card failed";
  show(card, "h2", "No answer");
  show(card, ".note", line);
}

function bar(name, probability) {
  const row = document.createElement("li"), fill = document.createElement("i");
  for (const part of ["name", "track", "value"]) row.append(Object.assign(document.createElement("span"), {className: part}));
  show(row, ".name", name);
  show(row, ".value", percent(probability));
  fill.style.width = 100 * probability + "%";
  row.querySelector(".track").append(fill);
  return row;
}

function uncertainty(card, said) {
  const most = Math.log(Math.max(Object.keys(said.probabilities).length, 2)), data = said.data_uncertainty, model = said.model_uncertainty;
  const wide = nats => Math.min(100, 100 * nats / most) + "%", limit = said.threshold;
  show(card, ".entropy", said.entropy.toFixed(3) + " of at most " + most.toFixed(3) + " nats");
  show(card, ".key .data b", data.toFixed(3));
  show(card, ".key .model b", model.toFixed(3));
  card.querySelector(".split .data").style.width = wide(data);
  card.querySelector(".split .model").style.width = wide(model);
  for (const mark of card.querySelectorAll(".limit")) mark.hidden = limit === null;
  if (limit !== null) {
    show(card, ".key .limit b", limit.toFixed(3));
    card.querySelector(".split .limit").style.left = wide(limit);
  }
  card.querySelector(".split").ariaLabel = `data ${data.toFixed(3)}, model ${model.toFixed(3)}`;
}

function tell(card, said) {
  card.className = said.known ? "card" : "card unknown";
  show(card, "h2", said.known ? said.class : "I don’t know");
  show(card, ".note", said.known
    ? `with a probability of ${percent(said.probability)}`
    : `The uncertainty is too large for an answer. The best guess is ${said.class}, with ${percent(said.probability)}.`);
  const best = Object.entries(said.probabilities).sort((a, b) => b[1] - a[1]).slice(0, SHOWN);
  card.querySelector(".bars").replaceChildren(...best.map(([name, p]) => bar(name, p)));
  uncertainty(card, said);
}

function newCard(image) {
  const card = document.getElementById("card").content.cloneNode(true).firstElementChild, picture = card.querySelector("img");
  card.className = "card wait";
  picture.src = URL.createObjectURL(image);
  picture.alt = image.name || "the image";
  picture.onload = () => { picture.className = picture.naturalWidth < 100 ? "small" : ""; };
  picture.onerror = () => { picture.hidden = true; };
  show(card, ".file", image.name || "pasted image");
  show(card, "h2", "…");
  answers.prepend(card);
  return card;
}

async function ask(image) {
  const card = newCard(image);
  try {
    const reply = await fetch("predict", {
      method: "POST", body: image, headers: {"Content-Type": image.type || "application/octet-stream"},
    });
    const said = await reply.json();
    if (reply.ok) tell(card, said); else fail(card, said.error);
  } catch {
    fail(card, "The server cannot be reached. Is it still running?");
  }
}

async function askAll(images) { for (const image of images) await ask(image); }

if (drop) {
  file.addEventListener("change", async () => { await askAll([...file.files]); file.value = ""; });
  addEventListener("paste", event => askAll([...event.clipboardData.files]));
  addEventListener("dragover", event => { event.preventDefault(); drop.classList.add("over"); });
  addEventListener("dragleave", event => { if (!event.relatedTarget) drop.classList.remove("over"); });
  addEventListener("drop", event => {
    event.preventDefault();
    drop.classList.remove("over");
    askAll([...event.dataTransfer.files]);
  });
}
