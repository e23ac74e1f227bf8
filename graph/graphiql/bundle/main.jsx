import './workers.js';
// GraphiQL loads the editor lazily; naming it here puts its style sheet into ours.
import 'monaco-graphql/esm/monaco-editor.js';
import { createRoot } from 'react-dom/client';
import { GraphiQL } from 'graphiql';
import 'graphiql/style.css';

const root = document.getElementById('graphiql');
const endpoint = new URL(root.dataset.endpoint, window.location.href);

async function fetcher(params, options = {}) {
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/graphql-response+json, application/json;q=0.9',
      ...options.headers,
    },
    body: JSON.stringify(params),
  });
  return response.json();
}

createRoot(root).render(<GraphiQL fetcher={fetcher} defaultQuery={root.dataset.query} />);
