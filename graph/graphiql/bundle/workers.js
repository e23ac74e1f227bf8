const scripts = { json: 'json.worker.js', graphql: 'graphql.worker.js' };

globalThis.MonacoEnvironment = {
  getWorker(_id, label) {
    const script = scripts[label] ?? 'editor.worker.js';
    return new Worker(new URL(script, import.meta.url));
  },
};
