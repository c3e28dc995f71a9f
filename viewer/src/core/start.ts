/**
 * Starting the page's worker, whose code stands in the page. It is a classic script: a page that was opened by double-click
 * has no origin, and a module worker does not start in it.
 */
import { workerAddress } from "./lazy";

export const start = (): Worker => new Worker(workerAddress(), import.meta.env.DEV ? { type: "module" } : {});
