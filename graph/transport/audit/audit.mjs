// Prints one line of JSON for each audit: {"id", "name", "status", "reason"}.
import { serverAudits } from 'graphql-http';

for (const audit of serverAudits({ url: process.argv[2], fetchFn: fetch })) {
  const result = await audit.fn();
  console.log(JSON.stringify({ id: audit.id, name: audit.name, status: result.status, reason: result.reason ?? '' }));
}
