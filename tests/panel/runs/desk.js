// What the order desk does in the browser: search, counting the stock, refunds; it says so on the console.
const $ = (selector) => document.querySelector(selector);
const money = (cents) => "$" + (cents / 100).toFixed(2);
console.log("order desk ready:", location.pathname);
const search = $("#search");
if (search) search.addEventListener("input", async () => {
  const found = await (await fetch("/api/orders?q=" + encodeURIComponent(search.value))).json();
  document.querySelectorAll("tbody tr").forEach((row) => { row.hidden = !found.includes(row.dataset.order); });
  $("#count").textContent = found.length === 1 ? "1 order" : found.length + " orders";
  console.info("search", search.value, found.length);
});
const count = $("#check-stock");
if (count) count.addEventListener("click", async () => {
  count.disabled = true;
  const answer = await fetch("/api/stock");
  count.disabled = false;
  if (!answer.ok) {
    console.error("stock service answered " + answer.status);
    $("#stock").innerHTML = '<div class="alert bad" role="alert">The stock service does not answer. Try again.</div>';
    return;
  }
  const stock = await answer.json();
  $("#stock").innerHTML = "<table><thead><tr><th>Item</th><th>In stock</th></tr></thead><tbody>" + Object.entries(stock)
    .map(([item, n]) => `<tr><td>${item}</td><td class="n">${n}</td></tr>`).join("") + "</tbody></table>";
});
const amount = $("#amount");
if (amount) {
  const judge = () => {
    const over = Math.round(parseFloat(amount.value || "0") * 100) > 5000;
    $("#refund").disabled = over;
    $("#limit").hidden = !over;
    if (over) console.warn("amount over the limit of " + money(5000));
  };
  amount.addEventListener("input", judge);
  $("#part").addEventListener("change", () => { amount.value = $("#part").value; judge(); });
  $("#refund").addEventListener("click", async () => {
    const cents = Math.round(parseFloat(amount.value) * 100);
    const body = JSON.stringify({ order: document.body.dataset.order, cents, reason: $("#reason").value });
    const answer = await fetch("/api/refunds", { method: "POST", headers: { "content-type": "application/json" }, body });
    const said = await answer.json();
    const message = answer.ok ? "Refund of " + money(said.cents) + " issued" : said.error;
    $("#told").innerHTML = `<div class="alert${answer.ok ? "" : " bad"}" role="alert">${message}</div>`;
    console[answer.ok ? "info" : "error"]("refund: " + message);
  });
}
