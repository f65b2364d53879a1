// What the modules of the page share, for TypeScript, which checks them: browsers get none of it.
import type { Context } from './broker_core_explorer/static/vendor/preact.js';
import type { Api as PageApi, ApiError } from './broker_core_explorer/static/page.js';

declare global {
  /** Values for an address or of an object of JSON, by their names. */
  type Values = Record<string, any>;
  interface RequestOf {
    query?: Values;
    body?: any;
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
  /** Where the page is, after `#` in the address: it stays in a link, and reaches no log of a server. `path` is what follows the screen, decoded. */
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
    /** Shows a line for some seconds, and tells it to screen readers; one with a link for longer, or until another place or a dialog is opened. */
    say: (text: string, href?: string) => void;
    said: { text: string; href: string };
    /** Opens the dialog in which a topic is made, or this one is changed, with what is given. */
    edit: (given?: { name?: string | null; partitions?: number; properties?: Values }, topic?: any) => void;
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
    /** When `data` came, if the server is away since; otherwise 0. */
    kept: number;
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
  /** The functions that modules give each other. */
  namespace F {
    type text = (text: string) => string;
    type shown = (value: unknown) => string;
    type placeOf = (hash: string) => Place;
    /** The text before the first separator and behind it. */
    type split = (text: string, at: string) => [string, string?];
    /** A link within the page. */
    type link = (parts: string[], query?: Values | URLSearchParams) => string;
    type linkIn = (screen: string, namespace: string, query?: Values | URLSearchParams) => string;
    /** Values for an address: empty ones are left out, an array is a repeated parameter. */
    type params = (values: Values) => URLSearchParams;
    /** `replace`: without a step for the button Back. */
    type go = (to: string, options?: { replace?: boolean }) => void;
    /** The only place where addresses of requests are made: `path` is below `/v1/`; with a slash before it, below the root of the server.
     *  What the browser, or a proxy that decodes it, reads as another address is not asked: `..` leaves the prefix of the server, with its credentials. */
    type address = (path: string, query?: Values) => URL;
    type request = (method: string, path: string, options?: RequestOf) => Promise<Response>;
    /** With parameters of the address, or with a body. */
    type askApi = (path: string, sent?: any, signal?: AbortSignal) => Promise<any>;
    /** Server-sent events until an error. */
    type events = (path: string, query: Values, options: EventsOf) => Promise<void>;
    /** Its JSON, which may end halfway. */
    type read = (response: Response) => Promise<any>;
    type useAsk = <T>(ask: ((signal: AbortSignal) => Promise<T>) | null, key: unknown[], options?: Asking) => Asked<T>;
    /** What a path of the API has; `null`: nothing is asked. */
    type useGet = (path: string | null, query?: Values, options?: Asking) => Asked<any>;
    /** Hears an event while a component is there. */
    type useEvent = (target: EventTarget, name: string, heard: (event: any) => void) => void;
    /** The texts of the page are English. */
    type counted = (value: number, one: string, many?: string) => string;
    /** Of milliseconds, or text of ISO 8601. */
    type date = (value: any) => Date | null;
    /** The beginning of a text that would fill the screen: properties may be 64 KB. */
    type cut = (text: string, most?: number) => string;
    /** Whether rules give a right: in the `namespace` that is open, `everywhere`, or `somewhere`. What is not known yet is a yes: the server decides. */
    type may = (me: any, right: string, where?: 'namespace' | 'everywhere' | 'somewhere') => boolean;
    /** Why topics cannot be changed from here; empty if they can. */
    type unchangeable = (me: any) => string;
    /** With the question, which the topic leads back to. */
    type topicLink = (question: Question, name: string) => string;
    /** A name without its namespace; a topic that is not persistent keeps its full one. */
    type inNamespace = (namespace: string, name: string) => string;
    /** A text whose controls and the like are as `how` writes them. */
    type unseen = (text: string, how: (each: string) => string) => string;
    /** For a shell; a terminal may run what is not escaped. */
    type quoted = text;
    /** Without characters of control and direction, by which a name shows as another one; letters from right to left stay. */
    type plain = text;
    /** What marks a control for which this right is missing. */
    type barred = (needs: string | false | undefined) => Values | string | false | undefined;
    type download = (name: string, chunks: string[], type: string) => void;
    type questionOf = (place: Place) => Question;
    type queryOf = (question: Question, more?: Values) => URLSearchParams;
    /** Properties that are asked with: one whose value is not typed yet is none. */
    type pairs = (question: Question) => [string, string][];
    type patternOf = (question: Question) => string;
    type valuesOf = (question: Question) => Values;
    /** The command of a change on the server that runs. */
    type commandOf = (api: Api, method: string, path: string, options: RequestOf) => string;
    /** Names of forms, and their texts. */
    type formsOf = (question: Question, api: Api) => string[][];
    /** What this browser keeps, or is to keep. */
    type stored = (name: string, value?: string) => string | null | undefined;
    /** `hash` null: forget it. */
    type save = (name: string, hash: string | null) => string | null | undefined;
    /** The values of a property by the rest of the question. */
    type useValues = (question: Question, name: string, prefix: string | null) => Asked<any>;
    /** Whether RE2 refuses the pattern; it is not asked of one that is too long. */
    type isRefused = (error: ApiError | null | undefined) => any;
    /** What is asked for a typed text, and where it begins in it: names are matched with `tenant/namespace/` before them. */
    type fullPattern = (typed: string, namespace: string) => { full: string; shift: number };
    /** A function from the full name of a topic to its marked parts: beginning, end and whether it is captured.
     *  RE2 decides on the server what matches: whatever is doubtful here has no colour. */
    type marker = (full: string) => (name: string) => [number, number, boolean][];
  }
  /** A list of any length: what is seen of it is fetched and drawn. */
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
