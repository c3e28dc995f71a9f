/** The worker: takes orders, answers with words. See `crew.ts`. */
import { type Order, serveOrders } from "./crew";
import { transferred } from "./outline";

const take = serveOrders((word, transfer) => self.postMessage(word, { transfer }), transferred);
self.onmessage = ({ data }: MessageEvent<Order>) => take(data);
