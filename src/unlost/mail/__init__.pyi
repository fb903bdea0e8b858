from unlost.mail.sender import MailRenderer as MailRenderer
from unlost.mail.sender import MailSender as MailSender
from unlost.mail.smtp import MailError as MailError
from unlost.mail.smtp import MailServer as MailServer
from unlost.mail.smtp import SmtpConnectionPool as SmtpConnectionPool
from unlost.mail.smtp import parse_mail_server as parse_mail_server
