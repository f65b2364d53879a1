// The framework of the page in one import: Preact, its hooks, and `html` in place of JSX.
import htm from './vendor/htm.js';
import { h, render, Fragment, createContext } from './vendor/preact.js';

export { h, render, Fragment, createContext };
export {
  useState, useEffect, useLayoutEffect, useMemo, useRef, useCallback, useContext, useErrorBoundary, useId,
} from './vendor/hooks.js';

/** Markup as a template: what stands in `${}` is text or a component, never markup. */
export const html = htm.bind(h);
