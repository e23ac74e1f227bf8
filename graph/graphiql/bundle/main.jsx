import './workers.js';
// GraphiQL loads the editor lazily; naming it here puts its style sheet into ours.
import 'monaco-graphql/esm/monaco-editor.js';
import { createRoot } from 'react-dom/client';
import { GraphiQL } from 'graphiql';
import { getOperationAST, parse } from 'graphql';
import 'graphiql/style.css';
import { events } from './events.js';

const root = document.getElementById('graphiql');
const endpoint = new URL(root.dataset.endpoint, window.location.href);

function send(params, options, accept, signal) {
  return fetch(endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept, ...options.headers },
    body: JSON.stringify(params),
    signal,
  });
}

// A subscription comes as server-sent events, one request for each (the distinct
// connections mode of graphql-sse). Ending the iteration ends the request.
async function* subscribe(params, options) {
  const abort = new AbortController();
  try {
    const response = await send(params, options, 'text/event-stream', abort.signal);
    if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
      yield await response.json();
      return;
    }
    for await (const { event, data } of events(response.body)) {
      if (event === 'complete') return;
      if (event === 'next') yield JSON.parse(data);
    }
  } finally {
    abort.abort();
  }
}

function isSubscription({ query, operationName }) {
  try {
    return getOperationAST(parse(query), operationName)?.operation === 'subscription';
  } catch {
    return false; // the hub says what is wrong with the document
  }
}

function fetcher(params, options = {}) {
  if (isSubscription(params)) return subscribe(params, options);
  return send(params, options, 'application/graphql-response+json, application/json;q=0.9').then((response) => response.json());
}

// What the address names is opened; without that, the examples in a tab each.
const asked = new URLSearchParams(window.location.search);
const opened = asked.has('query')
  ? { initialQuery: asked.get('query'), initialVariables: asked.get('variables') ?? undefined }
  : { defaultTabs: JSON.parse(root.dataset.examples).map((query) => ({ query })) };

createRoot(root).render(<GraphiQL fetcher={fetcher} defaultQuery={root.dataset.query} {...opened} />);
