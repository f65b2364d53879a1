// Questions of a screen to the API: asked again when their key changes, the one before cancelled.
import { createContext, useCallback, useContext, useEffect, useRef, useState } from './html.js';

/**
 * @typedef {object} Page what all screens share
 * @property {import('./api.js').Api} api
 * @property {any} me what `/v1/me` says, or null
 * @property {number} epoch raised when somebody signs in or the server comes back: everything is asked again
 * @property {(text: string) => void} say shows a line for some seconds, and tells it to screen readers
 * @property {any[]} screens of plugins
 */
/** @type {import('./vendor/preact.js').Context<Page>} */
export const PageContext = createContext(/** @type {any} */ (null));
/** @returns {Page} */
export const usePage = () => useContext(PageContext);

/**
 * @template T
 * @typedef {object} Asked
 * @property {T | undefined} data the last answer, also while the next one is awaited
 * @property {import('./api.js').ApiError | null} error of the last question
 * @property {boolean} loading
 * @property {boolean} slow loading for longer than people wait without a word
 * @property {boolean} old whether `data` is of a question before
 * @property {() => void} again
 */

const SLOW_MS = 1000;

/**
 * @template T
 * @param {((signal: AbortSignal) => Promise<T>) | null} ask `null`: nothing is asked
 * @param {any[]} key asked again when one of these is another; `keep` says whether the answer before stays meanwhile
 * @param {{keep?: boolean, delay?: number, every?: number}} [options] `every`: milliseconds, while the tab is seen
 * @returns {Asked<T>}
 */
export function useAsk(ask, key, { keep = true, delay = 0, every = 0 } = {}) {
  const { epoch } = usePage();
  const [turn, setTurn] = useState(0);
  const [state, set] = useState(/** @type {any} */ ({ data: undefined, error: null, loading: ask !== null, slow: false, old: false }));
  const again = useCallback(() => setTurn((before) => before + 1), []);
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    const asking = latest.current;
    if (asking === null) {
      set({ data: undefined, error: null, loading: false, slow: false, old: false });
      return undefined;
    }
    const controller = new AbortController();
    set((before) => ({ ...before, data: keep ? before.data : undefined, loading: true, slow: false, old: true }));
    const slow = setTimeout(() => set((before) => ({ ...before, slow: true })), SLOW_MS + delay);
    const start = setTimeout(() => {
      asking(controller.signal).then(
        (data) => !controller.signal.aborted && set({ data, error: null, loading: false, slow: false, old: false }),
        (error) => !controller.signal.aborted
          && set((before) => ({ ...before, error, loading: false, slow: false })),
      ).finally(() => clearTimeout(slow));
    }, delay);
    return () => {
      clearTimeout(slow);
      clearTimeout(start);
      controller.abort();
    };
  }, [...key, epoch, turn]);
  useEffect(() => {
    if (!every) return undefined;
    const timer = setInterval(() => document.visibilityState === 'visible' && again(), every);
    return () => clearInterval(timer);
  }, [every, again]);
  return { ...state, again };
}

/** A value that follows another one after a pause of typing. @template T @param {T} value @param {number} ms @returns {T} */
export function useSettled(value, ms) {
  const [settled, set] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => set(() => value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

/** Whether the tab is seen: streams are closed where it is not. */
export function useVisible() {
  const [visible, set] = useState(document.visibilityState === 'visible');
  useEffect(() => {
    const changed = () => set(document.visibilityState === 'visible');
    document.addEventListener('visibilitychange', changed);
    return () => document.removeEventListener('visibilitychange', changed);
  }, []);
  return visible;
}
