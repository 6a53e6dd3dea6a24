/** Threads that run tasks, which `WorkerTask` and the lanes are built on; `move` hands memory over instead of copying it. */
export { move, Piscina as ThreadPool, transferableSymbol, valueSymbol } from 'piscina';
