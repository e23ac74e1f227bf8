// Yields the server-sent events of a stream as { event, data }.
export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value.replaceAll('\r\n', '\n');
    const whole = text.split('\n\n');
    text = whole.pop();
    for (const one of whole) {
      const found = { event: 'message', data: '' };
      for (const line of one.split('\n')) {
        const [, name, rest] = line.match(/^(event|data): ?(.*)$/) ?? [];
        if (name === 'event') found.event = rest;
        if (name === 'data') found.data += rest;
      }
      yield found;
    }
  }
}
