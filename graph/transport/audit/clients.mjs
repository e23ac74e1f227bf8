// Asks with the clients of graphql-ws and graphql-sse; prints one line of JSON for
// each case: {"name", "events", "end"}.
import { createClient as createSocketClient } from 'graphql-ws';
import { createClient as createEventClient } from 'graphql-sse';
import WebSocket from 'ws';

const address = process.argv[2];

const clients = {
  'graphql-ws': () => createSocketClient({ url: address.replace('http', 'ws'), webSocketImpl: WebSocket, retryAttempts: 0, lazy: true }),
  'graphql-sse': () => createEventClient({ url: address, fetchFn: fetch, retryAttempts: 0 }),
};

const cases = {
  subscription: { query: 'subscription { ticks }' },
  query: { query: '{ hello }' },
  mutation: { query: 'mutation { change }' },
  variables: { query: 'subscription ($n: Int) { ticks(count: $n) }', variables: { n: 1 } },
  invalid: { query: 'subscription { nothing }' },
};

function run(client, payload) {
  return new Promise((resolve) => {
    const events = [];
    client.subscribe(payload, {
      next: (value) => events.push(value),
      error: (error) => resolve({ events, end: Array.isArray(error) ? error[0].extensions.code : String(error.reason ?? error) }),
      complete: () => resolve({ events, end: 'complete' }),
    });
  });
}

// The subscription of the first event is given up by the client.
function leave(client) {
  return new Promise((resolve) => {
    const events = [];
    const stop = client.subscribe({ query: 'subscription { endless }' }, {
      next: (value) => { events.push(value); stop(); },
      error: (error) => resolve({ events, end: String(error) }),
      complete: () => resolve({ events, end: 'complete' }),
    });
  });
}

for (const [library, make] of Object.entries(clients)) {
  const client = make();
  for (const [name, payload] of Object.entries(cases)) {
    console.log(JSON.stringify({ name: `${library} ${name}`, ...(await run(client, payload)) }));
  }
  console.log(JSON.stringify({ name: `${library} left`, ...(await leave(client)) }));
  await client.dispose();
}
