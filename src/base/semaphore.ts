/** Runs at most so many pieces of work at a time, in the order they came: `const semaphore = makeSemaphore(2)`, `await semaphore(work)`. */
export { default as makeSemaphore, type LimitFunction as Semaphore } from 'p-limit';
