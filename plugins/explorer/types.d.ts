// What the modules of the page share, for TypeScript, which checks them: browsers get none of it.
import type { Context } from './broker_core_explorer/static/vendor/preact.js';
import type { Api as PageApi, ApiError } from './broker_core_explorer/static/page.js';

declare global {
  /** Values for an address or of an object of JSON, by their names. */
  type Values = Record<string, any>;
  interface RequestOf {
    query?: Values;
    body?: any;
    type?: string;
    headers?: Values;
    signal?: AbortSignal;
  }
  /** `event` gets each event; those after `last` are asked for. */
  interface EventsOf {
    signal: AbortSignal;
    last?: string;
    event: (name: string, data: string, id: string) => void;
  }
  type Api = PageApi;
  /** Where the page is: `path` is what follows the screen, decoded. */
  interface Place {
    screen: string;
    path: string[];
    query: URLSearchParams;
  }
  /** What all screens share. */
  interface Page {
    api: Api;
    /** What `/v1/me` says, or null. */
    me: any;
    /** Raised when somebody signs in or the server comes back: everything is asked again. */
    epoch: number;
    /** Shows a line for some seconds, and tells it to screen readers. */
    say: (text: string) => void;
    /** Those of plugins, and the question that they are the answer of. */
    screens: any[];
    brought: any;
  }
  type PageContextOf = Context<Page>;
  interface Asked<T> {
    /** The last answer, also while the next one is awaited. */
    data: T | undefined;
    error: ApiError | null;
    loading: boolean;
    /** Loading for longer than people wait without a word. */
    slow: boolean;
    /** Whether `data` is of a question before. */
    old: boolean;
    again: () => void;
  }
  interface Asking {
    /** Whether the answer before stays meanwhile. */
    keep?: boolean;
    /** Milliseconds until it is asked, and between two questions while the tab is seen: these show no sign. */
    delay?: number;
    every?: number;
  }
  /** The question of a listing. */
  interface Question {
    /** `tenant/namespace` */
    namespace: string;
    /** The pattern as it was typed. */
    typed: string;
    /** `persistent`, `non_persistent` or `all` */
    mode: string;
    properties: [string, string][];
    /** Whose question it is in place of that of the one signed in. */
    as: { role?: string; address?: string; client_version?: string } | null;
  }
  interface FormOf {
    /** The screen whose address has the question, and what else it has. */
    screen: string;
    question: Question;
    more?: Record<string, any>;
    /** Of the listing. */
    error?: any;
    /** Whether the question may be somebody else's. */
    asks?: boolean;
  }
  interface RowsOf {
    /** Of the list, for screen readers. */
    label: string;
    /** Another text is another list, which begins at its first row; another state of it has its rows fetched anew. */
    of: string;
    state: string;
    /** Whether the last one is on top. */
    last: boolean;
    total: number;
    /** Rows that are known already. */
    first: any[];
    load: ((offset: number, limit: number, signal: AbortSignal) => Promise<any[]>) | null;
    /** What a row shows, and where it leads. */
    row: (item: any) => any;
    href: (item: any) => string;
  }
  interface ChartOf {
    title: string;
    /** The oldest is first. */
    values: (number | null)[];
    /** Milliseconds of the last one. */
    until: number;
    /** Seconds between two. */
    interval: number;
    format: (value: number) => string;
  }
  interface PartOf {
    title: string;
    path: string | null;
    query?: Record<string, any>;
    what: string;
    every?: { every?: number };
    rights?: string;
    tools?: any;
    children: (data: any) => any;
  }
}
