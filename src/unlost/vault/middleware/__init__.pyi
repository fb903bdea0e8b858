from unlost.vault.middleware.asgi import AsgiMessage as AsgiMessage
from unlost.vault.middleware.asgi import VaultMiddleware as VaultMiddleware
